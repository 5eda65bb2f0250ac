"""Builds the parts of a lab's Kubernetes once: python -m lab.kubernetes, for make setup-kubernetes."""

from __future__ import annotations

import sys

from lab.nodes.programs import LabError, require
from lab.running import Lab


def main() -> int:
    """Build all parts and return the exit code."""
    try:
        require()
        Lab().built()
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
