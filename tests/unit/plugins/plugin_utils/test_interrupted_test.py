"""Ctrl-C during a vMotion test names what the test leaves."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.trials.evidence.facts import Facts
from plugins.plugin_utils import interruption, trial
from tests.unit.simulation.world import World


def test_ctrl_c_names_the_unfinished_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown: list[str] = []
    monkeypatch.setattr(interruption, "_show", shown.append)
    site: Any = SimpleNamespace(folder=tmp_path)

    # A shell starts background jobs with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), trial.TEST.attended(Facts(World().settings), site):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    (text,) = shown
    assert f"is unfinished in {tmp_path}, and holds the lock of the cluster" in text
