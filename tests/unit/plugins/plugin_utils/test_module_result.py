"""A module that ends without a message is named, with what is known about its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.plugin_utils.module_result import explained

UNREAD = {"failed": True, "msg": "Module result deserialization failed: No start of json char found"}
# ansible-core up to 2.18 says this.
FAILURE = {"failed": True, "msg": "MODULE FAILURE: No start of json char found\nSee stdout/stderr for the exact error"}
# ansible-core 2.21; 2.18 says what the second one of its cases says.
COMMAND = {"failed": True, "cmd": ["squeue", "-h"], "rc": 1, "msg": "The command exited with a non-zero return code."}
TRACEBACK = 'Traceback (most recent call last):\n  File "x", line 1\nMemoryError\n'
ERROR = SimpleNamespace(event=SimpleNamespace(msg="'NoneType' object is not iterable", formatted_traceback=TRACEBACK))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            {**UNREAD, "rc": 137, "module_stdout": "", "module_stderr": ""},
            "the module esxi_profile was killed, perhaps",
        ),
        ({**FAILURE, "rc": -9, "module_stdout": "", "module_stderr": "Killed"}, "esxi_profile was killed, perhaps for"),
        ({**FAILURE, "rc": 1, "module_stdout": "", "module_stderr": TRACEBACK}, "without a result: MemoryError"),
        (
            {**UNREAD, "rc": 1, "module_stdout": "sudo: no\n", "module_stderr": ""},
            "exit code 1 and without a result: sudo",
        ),
        ({**UNREAD, "rc": 0, "module_stdout": "", "module_stderr": " \n"}, "without a result: it wrote nothing"),
        (
            {**COMMAND, "stdout": "", "stderr": "slurm_load_jobs error: no\n"},
            "squeue ended with 1: slurm_load_jobs error: no",
        ),
        (
            {**COMMAND, "msg": "non-zero return code", "stdout": "Reservation a not found", "stderr": ""},
            "squeue ended with 1: Reservation a not found",
        ),
        (
            {"failed": True, "exception": ERROR},
            "an unexpected error: 'NoneType' object is not iterable; this is a fault",
        ),
        (
            {"failed": True, "exception": "(traceback unavailable)"},
            "an unexpected error: (traceback unavailable); this",
        ),
        ({"failed": True}, "an unexpected error: it has no message; this is a fault of the module"),
        ({"failed": True, "msg": "esx1: it is busy", "rc": 1}, "esx1: it is busy"),
    ],
)
def test_a_failed_module_always_has_a_message(result: dict[str, Any], words: str) -> None:
    assert words in explained("esxi_profile", result)["msg"]


def test_good_result_stays_unchanged() -> None:
    assert explained("esxi_profile", {"changed": True, "exception": ERROR}) == {"changed": True, "exception": ERROR}
