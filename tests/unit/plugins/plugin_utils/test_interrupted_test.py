"""Ctrl-C during a vMotion test names what the test leaves."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.steps.trial import Trial
from plugins.plugin_utils import interruption, trial
from tests.unit.simulation.world import World


def test_ctrl_c_names_the_unfinished_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown: list[str] = []
    monkeypatch.setattr(interruption, "_show", shown.append)
    nothing: Any = None
    interrupted = Trial(nothing, nothing, Facts(World().settings))

    # A shell starts background jobs with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), trial._as_window(interrupted, tmp_path):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    (text,) = shown
    assert f"is unfinished in {tmp_path}, and holds the lock of the cluster" in text
