"""The reason of a failed task includes the output of its program on stderr."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests import task_failure

PIP = {"cmd": ["/opt/venv/bin/pip", "install"], "rc": 1, "msg": "non-zero return code"}
APT = "'/usr/bin/apt-get install' failed: E: Version '9' for 'hello' was not found"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({**PIP, "stderr": "ERROR: hashes differ\n", "stdout": "Collecting"}, "pip ended with 1: ERROR: hashes differ"),
        ({**PIP, "stderr": "", "stdout": "only this"}, "pip ended with 1: only this"),
        ({**PIP, "stderr": "", "stdout": ""}, "pip ended with 1"),
        ({**PIP, "msg": "The command exited with a non-zero return code.", "stderr": "no"}, "pip ended with 1: no"),
        ({"cmd": "rm -rf part && pip wheel", "rc": 2, "stderr": "no g++"}, "The command ended with 2: no g++"),
        ({"msg": APT, "rc": 100, "stderr": "E: Version '9' for 'hello' was not found"}, APT),
        ({"msg": "Could not load.", "stderr": "no such device"}, "Could not load: no such device"),
        ({"msg": "Assertion failed: x."}, "Assertion failed: x."),
        (
            {"msg": "MODULE FAILURE: No start", "module_stderr": "sudo: no"},
            "The task failed without a message: sudo: no",
        ),
        (
            {"msg": "Module result deserialization failed: No start of json char found", "module_stderr": "sudo: no"},
            "The task failed without a message: sudo: no",
        ),
        ({}, "The task failed without a message"),
    ],
)
def test_the_output_of_the_program_is_shown(result: dict[str, Any], words: str) -> None:
    assert task_failure.message_of(result) == words


def test_only_failed_items_have_a_reason() -> None:
    items = [{**PIP, "failed": True, "stderr": "first"}, {"stderr": "fine"}, {"failed": True, "msg": "second"}]
    assert (
        task_failure.message_of({"msg": "One or more items failed", "results": items})
        == "pip ended with 1: first second"
    )
