"""Print the PCI addresses of NVIDIA GPUs, with or without a driver, one per line."""

from __future__ import annotations

import sys
from pathlib import Path

NVIDIA, DISPLAY = "0x10de", "0x03"


def cards(devices: Path) -> list[str]:
    """Return the addresses of NVIDIA display controllers, which include all GPUs and vGPUs."""
    return [
        one.name
        for one in sorted(devices.glob("*"))
        if (one / "vendor").read_text().strip() == NVIDIA and (one / "class").read_text().startswith(DISPLAY)
    ]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{one}\n" for one in cards(Path("/sys/bus/pci/devices"))))
