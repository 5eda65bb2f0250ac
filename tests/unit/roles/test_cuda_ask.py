"""How cuDNN and NCCL count their versions, and what is reported where nothing is installed."""

from __future__ import annotations

import json

import pytest

from roles.cuda.files import ask


@pytest.mark.parametrize(
    ("number", "newer", "version"),
    [
        (7600, ask.NEWER_CUDNN, "7.6.0"),
        (8907, ask.NEWER_CUDNN, "8.9.7"),
        (90100, ask.NEWER_CUDNN, "9.1.0"),
        (2407, ask.NEWER_NCCL, "2.4.7"),
        (2804, ask.NEWER_NCCL, "2.8.4"),
        (20909, ask.NEWER_NCCL, "2.9.9"),
        (22501, ask.NEWER_NCCL, "2.25.1"),
    ],
)
def test_numbers_are_versions(number: int, newer: int, version: str) -> None:
    assert ask.version(number, newer) == version


def test_reports_missing_parts_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    ask.main("/nonexistent")
    result = json.loads(capsys.readouterr().out)
    assert "/nonexistent/bin/nvcc" in result["nvcc_why"]
    assert {"cudnn_why", "nccl_why", "devices_why"} < set(result)
