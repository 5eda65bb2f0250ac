"""The use of GPUs from texts of nvidia-smi: what it does not report is unknown, and no text fails."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.output.gpu_use import MIB, GpuUse, NodeGpus, gpus_of, mean_use


def read(text: str, code: int = 0, age: float = 1.0) -> NodeGpus:
    """Return the GPUs of a node whose watch received a text."""
    (node,) = gpus_of({"n1": {"gpus": [100.0 - age, {"text": text, "code": code}]}}, 100.0)
    return node


def test_each_row_is_a_gpu() -> None:
    node = read("0, NVIDIA H100 80GB HBM3, 93, 70123, 81559\n1, NVIDIA H100 80GB HBM3, 0, 3, 81559\n")
    assert node == NodeGpus(
        "n1",
        (
            GpuUse(0, "NVIDIA H100 80GB HBM3", 93.0, 70123 * MIB, 81559 * MIB),
            GpuUse(1, "NVIDIA H100 80GB HBM3", 0.0, 3 * MIB, 81559 * MIB),
        ),
        "",
    )
    assert mean_use([node]) == 46.5


ODD_NUMBERS = (
    *("[N/A]", "[n/a]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!"),
    *("[Insufficient Permissions]", "", "-1", "nan", "inf", "101", "1e3", "٣", "9" * 30),
)


@pytest.mark.parametrize("odd", ODD_NUMBERS)
def test_a_value_that_is_not_numeric_is_unknown(odd: str) -> None:
    node = read(f"0, GRID A100D-16C, {odd}, 5, 16384")
    assert (node.gpus, node.why) == ((GpuUse(0, "GRID A100D-16C", None, 5 * MIB, 16384 * MIB),), "")
    assert mean_use([node]) is None
    if odd != "101":
        assert read(f"0, A, 1, {odd}, {odd}").gpus == (GpuUse(0, "A", 1.0, None, None),)


@pytest.mark.parametrize("error", ["GPU is lost", "GPU requires reset"])
def test_a_lost_gpu_is_named(error: str) -> None:
    node = read(f"0, A, [{error}], [{error}], [{error}]\n1, A, 5, 5, 16384")
    assert (len(node.gpus), node.why) == (2, f"GPU 0: {error}")


@pytest.mark.parametrize(
    ("text", "code", "why"),
    [
        ("No devices were found\n", 6, "No devices were found"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", 18, "Failed to initialize NVML: Driver"),
        ("\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, "NVIDIA-SMI has failed"),
        ("", 1, "nvidia-smi ended with exit code 1"),
        ("", 0, "nvidia-smi ended with exit code 0"),
        ("no answer for 15 s", -1, "no answer for 15 s"),
        ("\x1b[31m" + "x" * 500, 0, "?[31mxxx"),
    ],
)
def test_a_failing_program_gives_its_output_as_reason(text: str, code: int, why: str) -> None:
    node = read(text, code)
    assert node.gpus == ()
    assert node.why.startswith(why)
    assert len(node.why) <= 200


def test_a_lost_gpu_does_not_hide_the_others() -> None:
    lost = "Unable to determine the device handle for GPU0000:02:00.0: GPU is lost.  Reboot the system to recover."
    node = read(f"1, A, 7, 1, 2\n{lost}\n", 15)
    assert [gpu.number for gpu in node.gpus] == [1]
    assert node.why == lost


def test_an_old_reading_is_unknown() -> None:
    assert read("0, A, 7, 1, 2", age=31.0) == NodeGpus("n1", (), "no reading for 31 s")


@pytest.mark.parametrize("odd", [None, 5, [], ["x"], [1.0], [1.0, {}], [1.0, 5], ["x", {"text": ""}], {"text": ""}])
def test_an_odd_reading_is_a_reason(odd: Any) -> None:
    assert gpus_of({"n1": {"gpus": odd}}, 1.0) == [NodeGpus("n1", (), "the reading is not valid")]


def test_a_node_without_the_program_has_no_row() -> None:
    assert gpus_of({"n1": {"output": [1.0, "text"]}, "n2": {}, "n3": 5}, 1.0) == []
