"""NVIDIA's vGPU manager is detected by all of its names; NVIDIA's other VIBs are not."""

from __future__ import annotations

import pytest

from plugins.module_utils.core.vgpu_manager import is_manager


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA-VMware_ESXi_6.7_Host_Driver",
        "NVIDIA-vGPU-VMware_ESXi_6.5_Host_Driver",
        "NVIDIA-AIE_ESXi_7.0.2_Driver",
        "NVD-VMware_ESXi_8.0.0_Driver",
        "NVD-VGPU_ESXi_8.0.0_Driver",
        "NVD-AIE_ESXi_8.0.0_Driver",
        "nvd-aie_esxi_8.0.0_driver",
    ],
)
def test_a_manager_is_detected_by_its_name(name: str) -> None:
    assert is_manager(name)


@pytest.mark.parametrize("name", ["nvdgpumgmtdaemon", "NVD-GPU-MGMT-DAEMON", "nmlx5-core", "my-NVD-AIE", ""])
def test_other_names_are_not_recognized(name: str) -> None:
    assert not is_manager(name)
