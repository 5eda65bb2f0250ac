"""Checks every pinned version of the stacks and requirements against tools/advisories.yml, without network access."""

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
    """A version that a file pins."""

    file: str
    package: str
    version: str


def pins(root: Path) -> Iterator[Pin]:
    """Yield every pin of the checkout."""
    for path in sorted(root.glob(STACKS)):
        stack = yaml.safe_load(path.read_text())
        name = path.relative_to(root).as_posix()
        yield from (Pin(name, entry["name"].lower(), str(entry["version"])) for entry in _packages(stack))
        if stack.get("gpu_driver"):
            yield Pin(name, DRIVER, str(stack["gpu_driver"]["version"]))
    for pattern in REQUIREMENTS:
        for path in sorted(root.glob(pattern)):
            for package, version in PIN.findall(path.read_text()):
                yield Pin(path.relative_to(root).as_posix(), package.lower().replace("_", "-"), version)


def _packages(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all mappings below a value that have a name and a version."""
    if isinstance(value, dict) and "name" in value and value.get("version"):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _packages(below)


def upstream(version: str) -> Version | None:
    """Return the upstream version, without the parts that a distribution adds."""
    try:
        return Version(version)
    except InvalidVersion:
        found = PACKAGED.match(version)
        return Version(found[1]) if found else None


def vulnerabilities(root: Path, known: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each pin with a known, unaccepted vulnerability, and for each acceptance without one."""
    accepted = {(entry["file"], name) for entry in known["accepted"] for name in entry["packages"]}
    needed = set()
    for pin in pins(root):
        version = upstream(pin.version)
        listed = [entry for entry in known["advisories"] if entry["package"] == pin.package]
        ids = [entry["id"] for entry in listed if _is_in(version, entry)]
        if ids and (pin.file, pin.package) not in accepted:
            remedy = f"update it, or accept it in tools/{LIST.name}"
            yield f"{pin.file}: {pin.package} {pin.version} has {', '.join(ids)}: {remedy}."
        if ids:
            needed.add((pin.file, pin.package))
    for file, package in sorted(accepted - needed):
        yield f"{LIST.name}: {package} of {file} no longer has a known vulnerability: remove it from `accepted`."


def _is_in(version: Version | None, advisory: dict[str, Any]) -> bool:
    # A version that cannot be compared counts as affected, so that someone checks it.
    return version is None or SpecifierSet(advisory["affected"]).contains(version, prereleases=True)


def main() -> int:
    found = list(vulnerabilities(Path.cwd(), yaml.safe_load(LIST.read_text())))
    for sentence in found:
        print(sentence)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
