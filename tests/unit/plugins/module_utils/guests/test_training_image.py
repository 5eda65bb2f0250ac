"""The check of a training image: its reported versions, and a rank in it on each node."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.guests import node_checks

REPORTED = {"python": "3.7.9", "tensorflow": "1.13.1", "pytorch": "", "horovod": "0.16.4", "nccl": "2.4.7"}
DESIRED = {
    "framework": "tensorflow",
    "framework_version": "1.13.1",
    "horovod": "0.16.4",
    "python": "3.7",
    "openmpi": "4.0.0",
}


def versions(**changes: Any) -> dict[str, Any]:
    variables = {**REPORTED, "missing": [], "faults": [], **changes}
    return {"rc": 0, "stdout": "A banner.\nversions " + json.dumps(variables)}


def ran(*nodes: str, word: str = "allreduce", total: float = 3.0, **more: str) -> dict[str, Any]:
    variables = {"sum": total, "library": "Open MPI v4.0.0, pack", **more}
    lines = [f"{word} " + json.dumps({"node": node, **variables}) for node in nodes]
    return {"rc": 0, "stdout": "\n".join(lines)}


def judged(found: dict[str, Any], run: dict[str, Any], **expected: Any) -> tuple[dict[str, Any], list[str]]:
    requested = {"versions": {**DESIRED, **expected}, "nodes": ["w1", "w2"]}
    answer, _text = node_checks.check("training_image", "w1", {"versions": found, "run": run}, requested)
    return answer.facts, answer.misfits


def test_a_correct_image_has_its_versions_as_facts() -> None:
    facts, misfits = judged(versions(), ran("w1", "w2"), uses_nccl=True)
    assert misfits == []
    assert facts["versions"] == {"Python": "3.7.9", "tensorflow": "1.13.1", "horovod": "0.16.4", "OpenMPI": "4.0.0"}
    assert (facts["framework"], facts["nccl"], facts["uses_nccl"]) == ("tensorflow", "2.4.7", True)


def test_a_foreign_image_is_used_unchanged() -> None:
    nothing = dict.fromkeys(DESIRED, "")
    result = versions(tensorflow="", pytorch="2.6.0+cu124", horovod="")
    facts, misfits = judged(result, ran("w1", "w2", word="hello", total=1), **nothing)
    assert (misfits, facts["framework"], facts["uses_nccl"]) == ([], "pytorch_ddp", False)


@pytest.mark.parametrize(("horovod", "framework"), [("0.28.1", "pytorch"), ("", "pytorch_ddp")])
def test_pytorch_trains_without_horovod(horovod: str, framework: str) -> None:
    """An image without Horovod, such as NVIDIA's, must not get the benchmark that imports Horovod: each rank died."""
    result = versions(tensorflow="", pytorch="2.6.0+cu124", horovod=horovod)
    requested = {"framework": "pytorch", "framework_version": "", "horovod": horovod, "python": "", "openmpi": ""}
    facts, misfits = judged(result, ran("w1", "w2", backend="nccl"), **requested)
    assert (misfits, facts["framework"], facts["uses_nccl"]) == ([], framework, True)


@pytest.mark.parametrize(
    ("found", "run", "sentence"),
    [
        (versions(horovod="0.28.1"), ran("w1", "w2"), "The image has horovod 0.28.1, not 0.16.4."),
        (versions(tensorflow=""), ran("w1", "w2"), "The image lacks tensorflow 1.13.1."),
        (versions(python="3.70.1"), ran("w1", "w2"), "The image has python 3.70.1, not 3.7."),
        (
            versions(missing=["ssh"]),
            ran("w1", "w2"),
            "The image has no ssh, without which mpirun cannot reach other nodes.",
        ),
        (versions(faults=["x does not load: libx.so"]), ran("w1", "w2"), "x does not load: libx.so"),
        ({"rc": 125, "stderr": "no such image"}, ran("w1", "w2"), "A command in the image failed: no such image."),
        ({"rc": 0, "stdout": ""}, ran("w1", "w2"), "The image reports no versions."),
        (
            versions(),
            ran("w1", "w1"),
            "Each of 2 nodes must run a rank in the image that reaches all others; ranks ran on w1, w1.",
        ),
        (versions(), ran("w1", "w2", total=2.0), "Each of 2 nodes must run"),
        (versions(), {"rc": 1, "stderr": "ssh: refused"}, "The run in the image over all nodes failed: ssh: refused."),
    ],
)
def test_each_fault_is_listed(found: dict[str, Any], run: dict[str, Any], sentence: str) -> None:
    _facts, misfits = judged(found, run)
    assert [one for one in misfits if one.startswith(sentence)], misfits
