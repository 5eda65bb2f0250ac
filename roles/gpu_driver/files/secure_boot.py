"""Print whether the firmware started this kernel with Secure Boot: on or off."""

from __future__ import annotations

import sys
from pathlib import Path

# A UEFI variable: four bytes of attributes, then the value.
VARIABLE = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
VALUE = 4


def state(variables: Path) -> str:
    """Return the state from the firmware variables; a machine with a BIOS has none."""
    try:
        content = (variables / VARIABLE).read_bytes()
    except OSError:
        return "off"
    return "on" if content[VALUE:] == b"\x01" else "off"


if __name__ == "__main__":
    sys.stdout.write(state(Path("/sys/firmware/efi/efivars")))
