"""Ctrl-C of playbooks/train.yml: the job continues, and the last lines say how to follow and how to stop it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.integration.training import Playbook


@pytest.mark.slow
def test_interrupted_playbook_names_the_run_that_continues(tmp_path: Path) -> None:
    playbook = Playbook(tmp_path)
    with playbook.shown(9000, 0.1, training_name="one") as controller:
        assert controller.stdout is not None
        began = any("training: step" in line for line in controller.stdout)
        os.kill(controller.pid, signal.SIGINT)
        text = " ".join(controller.stdout.read().split())
    assert began
    assert "The training run one continues. To follow it, run the same command with -e training_name=one." in text
    assert "dml.vsphere.stop -e training_name=one" in text
    stop = playbook.ansible.module("training_job", run_dir=str(tmp_path / "runs" / "one"), state="stopped")
    assert stop.result["changed"], "the job went on"
