# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Holds every pin of the stacks and the requirements against tools/advisories.yml, without any network."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

LIST = Path(__file__).with_name("advisories.yml")
STACKS, REQUIREMENTS = "stacks/*.yml", ("requirements*.txt", "constraints.txt")
DRIVER = "nvidia-driver"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", re.MULTILINE)
# [epoch:]upstream[-revision]: https://www.debian.org/doc/debian-policy/ch-controlfields.html#version
PACKAGED = re.compile(r"^(?:\d+:)?([0-9][0-9.]*[0-9])")


class Pin(NamedTuple):
    """One version that a file asks for."""

    file: str
    package: str
    version: str


def pins(root: Path) -> Iterator[Pin]:
    """Every pin of the checkout."""
    for path in sorted(root.glob(STACKS)):
        stack = yaml.safe_load(path.read_text())
        name = path.relative_to(root).as_posix()
        yield from (Pin(name, one["name"].lower(), str(one["version"])) for one in _packages(stack))
        if stack.get("gpu_driver"):
            yield Pin(name, DRIVER, str(stack["gpu_driver"]["version"]))
    for pattern in REQUIREMENTS:
        for path in sorted(root.glob(pattern)):
            for package, version in PIN.findall(path.read_text()):
                yield Pin(path.relative_to(root).as_posix(), package.lower().replace("_", "-"), version)


def _packages(value: Any) -> Iterator[dict[str, Any]]:
    """Everything below a value that has a name and a version."""
    if isinstance(value, dict) and "name" in value and value.get("version"):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _packages(below)


def upstream(version: str) -> Version | None:
    """The version that the authors of the software gave, without what a distribution added."""
    try:
        return Version(version)
    except InvalidVersion:
        found = PACKAGED.match(version)
        return Version(found[1]) if found else None


def holes(root: Path, known: dict[str, Any]) -> Iterator[str]:
    """A sentence for each pin with a known hole that is not accepted, and for each acceptance without one."""
    accepted = {(one["file"], name) for one in known["accepted"] for name in one["packages"]}
    needed = set()
    for pin in pins(root):
        version = upstream(pin.version)
        ids = [one["id"] for one in known["advisories"] if one["package"] == pin.package and _is_in(version, one)]
        if ids and (pin.file, pin.package) not in accepted:
            yield f"{pin.file}: {pin.package} {pin.version} has {', '.join(ids)}: raise it or accept it in {LIST.name}."
        if ids:
            needed.add((pin.file, pin.package))
    for file, package in sorted(accepted - needed):
        yield f"{LIST.name}: {package} of {file} has no known hole any more: take it out of the accepted ones."


def _is_in(version: Version | None, advisory: dict[str, Any]) -> bool:
    # What cannot be compared counts as affected: somebody has to look.
    return version is None or SpecifierSet(advisory["affected"]).contains(version, prereleases=True)


def main() -> int:
    found = list(holes(Path.cwd(), yaml.safe_load(LIST.read_text())))
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
