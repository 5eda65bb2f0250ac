# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/train.yml with real mpirun: live lines, the result and the proof of its transport."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.training import Playbook


@pytest.fixture
def playbook(tmp_path: Path) -> Playbook:
    return Playbook(tmp_path)


@pytest.mark.slow
def test_a_training_run_is_shown_and_measured(playbook: Playbook) -> None:
    ran = playbook.run(150, 0.05, training_steps=150, training_name="one")
    assert ran.returncode == 0, ran.stdout
    assert "step 150 of 150" in ran.stdout
    assert "images/s" in ran.stdout
    assert "slowest rank" in ran.stdout
    result = playbook.result("one")
    assert (result["nodes"], result["gpus"], result["transport"], result["steps"]) == (4, 4, "tcp", 150)
    assert 0 < result["images_per_sec"] < 4 * 8 / 0.05
    assert result["proof"]["ok"]
    assert result["job"]["state"] == "finished"
