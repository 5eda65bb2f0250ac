"""PCI IDs as the API returns them, and the detection of GPUs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

NVIDIA = 0x10DE
DISPLAY = 0x03  # the upper byte of the PCI class: VGA and 3D controllers


def unsigned(number: int) -> int:
    """Return a 16-bit ID; the API returns IDs from 0x8000 on as negative numbers."""
    return number & 0xFFFF


def kind_of(device: Any) -> str:
    """Return the vendor:device ID of a PCI device, such as 10de:1eb8."""
    return f"{unsigned(device.vendorId):04x}:{unsigned(device.deviceId):04x}"


def is_nvidia(device: Any) -> bool:
    return unsigned(device.vendorId) == NVIDIA


def is_gpu(device: Any, with_graphics: Collection[str]) -> bool:
    """Return whether a PCI device is an NVIDIA GPU; ``with_graphics`` are the addresses of the host's graphics devices.

    NVSwitches and the audio functions of GPUs are NVIDIA devices but not display devices. The virtual functions of an
    SR-IOV GPU are display devices; the GPU itself is device 0, function 0.
    """
    if not is_nvidia(device) or unsigned(device.classId) >> 8 != DISPLAY:
        return False
    return device.id in with_graphics or device.id.endswith(":00.0")
