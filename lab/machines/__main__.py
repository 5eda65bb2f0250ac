"""Builds the parts of virtual machines that do not exist yet: python -m lab.machines."""

from __future__ import annotations

import sys

from lab.machines import roots
from lab.nodes.programs import LabError, require
from lab.running import MACHINES


def main() -> int:
    """Build the parts and return the exit code."""
    try:
        require(machines=True)
        made = roots.ensure(MACHINES, print)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Virtual machines use {made.engine} and {made.disk}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
