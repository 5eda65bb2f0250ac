"""NVIDIA's vGPU manager for ESXi, detected by the names of its VIBs."""

from __future__ import annotations

import re

# NVIDIA's release notes and guides: NVIDIA-VMware_ESXi_6.7_Host_Driver, NVIDIA-vGPU-VMware_ESXi_6.5_Host_Driver,
# NVIDIA-AIE_ESXi_7.0.2_Driver, NVD-VMware_..., NVD-VGPU_..., NVD-AIE_ESXi_8.0.0_Driver.
_NAMES = re.compile(r"(NVIDIA|NVD)-(AIE|VGPU|VMware)", re.IGNORECASE)


def is_manager(name: str) -> bool:
    return _NAMES.match(name) is not None
