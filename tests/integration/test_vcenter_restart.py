"""vCenter restarts while a vMotion test or a change of hosts runs: connections are refused, then sessions are gone."""

from __future__ import annotations

import json

import pytest

from tests.integration.ansible import AnsibleFor, Start
from tests.integration.faults import Bench, last_sentence
from tests.integration.killing import has_started, wait_for
from tests.integration.rolling import datacentre
from tests.integration.test_vmotion_test import LONG, WORKERS, Trial, trial
from tests.integration.test_vmotion_test_killed import has

__all__ = ["trial"]  # the fixture

AWAY = 12.0


@pytest.mark.slow
@pytest.mark.parametrize("encryption", ["on"])
def test_vmotion_test_survives_vcenter_restart_during_a_move(trial: Trial) -> None:
    """The host carries the move out; the test finds it, moves no worker twice, and its verdict holds."""
    trial.train()
    trial.vcenter.set_host("esx01.lab", vmotion_seconds=5)
    running = trial.begin(vmotion_test_workers=WORKERS[:2])
    wait_for(has_started(trial.vcenter, "RelocateVM_Task"))
    trial.vcenter.restart(AWAY)
    text = running.communicate(timeout=LONG)[0]
    assert running.returncode == 0, text
    assert sorted(trial.moved()) == WORKERS[:2], "a move was started twice, or never"
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["moved"], verdict["breaches"]) == ("continuous", "all", [])
    assert trial.free()


@pytest.mark.slow
@pytest.mark.parametrize("encryption", ["on"])
def test_vmotion_test_survives_vcenter_restart_between_moves(trial: Trial) -> None:
    trial.train()
    running = trial.begin(vmotion_test_workers=WORKERS[:2])
    wait_for(lambda: has(trial, "judged 1")() or running.poll() is not None, LONG)
    trial.vcenter.restart(AWAY)
    text = running.communicate(timeout=LONG)[0]
    assert running.returncode == 0, text
    assert "vCenter cannot be reached; waits for" in text
    assert sorted(trial.moved()) == WORKERS[:2]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["EnterMaintenanceMode_Task", "UpdateModuleOptionString", "RebootHost_Task"])
def test_host_change_survives_a_vcenter_restart(start: Start, ansible_for: AnsibleFor, method: str) -> None:
    """The run ends in one sentence, and the next one goes on; no host boots twice."""
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    bench = Bench(vcenter, ansible_for(vcenter))
    bench.next_run()
    running = bench.begin()
    wait_for(has_started(vcenter, method))
    vcenter.restart(AWAY)
    text = running.communicate(timeout=LONG)[0]
    if running.returncode:
        sentence = last_sentence(text)
        assert sentence.count("could not") <= 1, sentence
        assert "the next run of this playbook continues from here" in sentence
    bench.finish("esx01.lab", "esx02.lab", killed=True)
