"""The end of a module in which the system reported an error, not the collection."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import NotConnected
from tests.fakes.module import FakeModule


def test_run_reports_a_full_disk_but_raises_bugs() -> None:
    module = FakeModule()

    def written() -> dict[str, Any]:
        Path("/dev/full").write_text("x")
        return {}

    runner.run(module, written)
    message = "could not write a file: No space left on device; free some space and run this again"
    assert module.ended == [("fail", {"msg": f"{socket.gethostname()}: {message}"})]
    with pytest.raises(FileNotFoundError):
        runner.run(FakeModule(), lambda: {"text": Path("/nowhere").read_text()})


def test_module_without_a_session_advises_to_repeat_it() -> None:
    module = FakeModule()

    def away() -> dict[str, Any]:
        raise NotConnected("vc:443", "connect", "the connection broke", "check hostname")

    runner.run(module, away)
    assert module.ended == [
        ("fail", {"msg": "vc:443: could not connect: the connection broke; check hostname", "not_connected": True})
    ]
