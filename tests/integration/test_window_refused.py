"""playbooks/hosts.yml around a job: what is refused before the first write, and between two hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.releases import NEWEST
from tests.integration.rolling import times
from tests.integration.test_hosts_under_training import HOSTS, PROFILE, Window
from tests.integration.test_vmotion_test import LONG, Trial, trial
from tests.unit.simulation.world import SETTINGS

__all__ = ["trial"]  # the fixture
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]


def words(text: str) -> str:
    return " ".join(text.split())


def refused_before_a_write(trial: Trial, window: Window, *arguments: str, **variables: Any) -> str:
    done = window.run(*arguments, **variables)
    assert done.rc != 0, done.out
    assert trial.vcenter.writes() == [], done.out
    return words(done.out)


def test_changes_no_host_without_a_verified_job(trial: Trial) -> None:
    window = Window(trial)
    name = trial.nodes.run_dir.name
    text = refused_before_a_write(trial, window, training_name="no-such-job")
    assert "could not change its hosts around a training job: no job was found, because" in text
    assert "with the name no-such-job" in text and name in text.partition("running jobs:")[2], text


def test_stop_rule_prevents_all_moves_and_host_changes(trial: Trial) -> None:
    window = Window(trial)
    trial.vcenter.set_cluster("gpu", vsan_resync_bytes=3 * 2**30)
    done = window.run()
    assert done.rc != 0 and "gpu: vSAN is resyncing, 3.0 GiB are left" in words(done.out), done.out
    assert trial.moved() == [] and window.booted() == {}
    assert times(trial.vcenter.writes(), "EnterMaintenanceMode_Task") == {}
    assert trial.free()


@pytest.mark.slow
def test_does_not_continue_a_window_with_another_profile(trial: Trial) -> None:
    window = Window(trial)
    running = trial.ansible.start(*window.command())
    started = has_started(trial.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    kill_all(running)
    trial.vcenter.clear()
    other = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
    text = refused_before_a_write(trial, window, esxi_host_profile=other)
    assert "its maintenance window began with other settings: profile was" in text
    assert '"max_vfs": 4' in text and '"max_vfs": 8' in text, text
    assert "run again with window_settings=old to finish it as it began, or with window_settings=new" in text
    # A stop rule that the user accepts now, and did not accept when the window began.
    trial.vcenter.set_cluster("gpu", vsan_resync_bytes=2**30)
    accepting = {"esxi_host_accepted_stops": ["vsan_resync"]}
    old = window.run(esxi_host_profile=other, window_settings="old", **accepting)
    assert old.rc != 0 and sum(window.booted().values()) == len(HOSTS) - 1, old.out
    assert "the window is over, but these hosts differ from the requested profile: esx01.lab (" in words(old.out)
    done = window.run(esxi_host_profile=other, **accepting)
    assert done.rc == 0 and window.booted().keys() == set(HOSTS), done.out


def test_does_not_continue_a_run_of_another_kind(trial: Trial, tmp_path: Path) -> None:
    """An unfinished window is not a vMotion test: the playbook would reboot hosts."""
    folder = tmp_path / "tests" / "gpu-one"
    folder.mkdir(parents=True, mode=0o700)
    settings = {**SETTINGS, "window": {"hosts": HOSTS, "profile": PROFILE}}
    (folder / "journal.jsonl").write_text(json.dumps({"at": 1.0, "key": "start", "value": settings}) + "\n")
    (folder / "journal.jsonl").chmod(0o600)
    done = trial.run()
    assert done.rc != 0 and trial.vcenter.writes() == [], done.out
    assert "it has an unfinished maintenance window, not a vMotion test" in words(done.out), done.out
