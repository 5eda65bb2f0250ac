"""Whether a node supports GPUDirect RDMA, and which of two bandwidths is worth a setting."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests import gpudirect

PEERMEM = {"gpudirect": [1, 1], "dma_buf": [0, 0], "modules": ["nvidia_peermem"]}
DMA_BUF = {"gpudirect": [1, 1], "dma_buf": [1, 1], "modules": []}


@pytest.mark.parametrize(
    ("found", "possible"),
    [
        (PEERMEM, True),
        (DMA_BUF, True),
        ({**DMA_BUF, "dma_buf": [1, 0]}, False),
        ({**PEERMEM, "gpudirect": [1, 0]}, False),
        ({**PEERMEM, "modules": None}, False),
        ({**PEERMEM, "gpudirect": None}, None),
        ({**PEERMEM, "gpudirect": [None, 1]}, None),
        ({}, None),
    ],
)
def test_gpudirect_needs_a_module_or_dma_buf(found: dict[str, Any], possible: bool | None) -> None:
    assert gpudirect.is_possible(found) is possible
    assert bool(gpudirect.misfit(found)) is (possible is not True)


@pytest.mark.parametrize(
    ("with_it", "without", "words"),
    [
        (180.0, 95.0, "180.00 Gbit/s with it (training_gdr=SYS), 95.00 without: set training_gdr=SYS."),
        (60.0, 95.0, "set training_gdr=off."),
        (95.0, 97.0, "the difference is too small to matter."),
        (None, 95.0, "was not compared"),
    ],
)
def test_the_faster_of_two_measurements_names_its_setting(
    with_it: float | None, without: float | None, words: str
) -> None:
    assert words in gpudirect.difference(with_it, without, "SYS")
