"""The 64-bit memory window, against the values of VMware and NVIDIA."""

from __future__ import annotations

import pytest

from plugins.module_utils.workers.placement.mmio import memory_gb, window_gb


@pytest.mark.parametrize(
    ("gpus", "window"),
    [
        ([], 0),
        ([32], 64),
        ([32, 32], 128),
        ([24], 64),
        ([24, 24], 128),
        ([40], 128),
        ([40, 40], 256),
        ([80], 256),
        ([80, 80], 512),
        ([15.0], 32),
        ([39.6], 128),
    ],
)
def test_window_is_double_the_next_power_of_two(gpus: list[float], window: int) -> None:
    assert window_gb(gpus) == window


@pytest.mark.parametrize(
    ("kind", "name", "size"),
    [
        ("10de:20f1", "", 40),
        ("10de:20b5", "NVIDIA A100-PCIE-40GB", 40),
        ("10de:ffff", "A100 80GB PCIe", 80),
        ("10de:ffff", "NVIDIA A100", None),
    ],
)
def test_prefers_the_memory_in_the_model_name(kind: str, name: str, size: int | None) -> None:
    assert memory_gb(kind, name) == size
