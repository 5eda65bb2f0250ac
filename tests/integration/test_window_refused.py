"""playbooks/hosts.yml around a job: what is refused before the first write, and between two hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.trial import SETTINGS
from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.releases import NEWEST
from tests.integration.rolling import times
from tests.integration.test_hosts_under_training import HOSTS, PROFILE, Window
from tests.integration.test_vmotion_test import LONG, WORKERS, Trial, trial

__all__ = ["trial"]  # the fixture
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]
NOWHERE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9, "ansible_ssh_retries": 0}


def words(text: str) -> str:
    return " ".join(text.split())


def refused_before_a_write(trial: Trial, window: Window, *arguments: str, **variables: Any) -> str:
    done = window.run(*arguments, **variables)
    assert done.rc != 0, done.out
    assert trial.vcenter.writes() == [], done.out
    return words(done.out)


def test_changes_no_host_without_a_verified_job(trial: Trial) -> None:
    """A mistyped name, guests out of reach, an inventory without workers."""
    window = Window(trial)
    name = trial.nodes.run_dir.name
    text = refused_before_a_write(trial, window, training_name="no-such-job")
    assert "could not change its hosts around a training job: no job was found, because" in text
    assert "with the name no-such-job" in text and name in text.partition("running jobs:")[2], text
    inventory = json.loads(window.inventory.read_text())
    lost = {**inventory["all"]["children"], "workers": {"hosts": dict.fromkeys(WORKERS, NOWHERE)}}
    window.inventory.write_text(json.dumps({"all": {"children": lost}}))
    text = refused_before_a_write(trial, window)
    assert "unreadable workers: worker01 (" in text and "leave out under_training" in text, text
    window.inventory.write_text(json.dumps({"all": {"children": {"clusters": lost["clusters"]}}}))
    text = refused_before_a_write(trial, window)
    assert "this run has no workers in the inventory" in text, text


def test_a_limit_that_excludes_the_workers_is_refused(trial: Trial) -> None:
    text = refused_before_a_write(trial, Window(trial), "--limit", "gpu")
    assert "--limit gpu excludes the workers. Add them to the limit, or leave out under_training" in text, text


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"vsan_resync_bytes": 3 * 2**30}, "gpu: vSAN is resyncing, 3.0 GiB are left"),
        ({"alarm": "red"}, "is red since"),
    ],
)
def test_no_worker_moves_and_no_host_leaves_service_while_a_stop_rule_holds(
    trial: Trial, state: dict[str, Any], reason: str
) -> None:
    window = Window(trial)
    trial.vcenter.set_cluster("gpu", **state)
    done = window.run()
    assert done.rc != 0 and reason in words(done.out), done.out
    assert trial.moved() == [] and window.booted() == {}
    assert times(trial.vcenter.writes(), "EnterMaintenanceMode_Task") == {}
    assert trial.free()


@pytest.mark.slow
def test_a_stop_rule_ends_the_window_between_two_hosts_unless_it_is_accepted(trial: Trial) -> None:
    window = Window(trial)
    running = trial.ansible.start(*window.command())
    started = has_started(trial.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    trial.vcenter.set_cluster("gpu", vsan_resync_bytes=2**30)
    out = running.communicate(timeout=LONG)[0]
    assert running.returncode != 0 and "vSAN is resyncing" in words(out), out
    assert len(window.booted()) == 1, "the host at hand returns, and no other host leaves service"
    assert times(trial.vcenter.writes(), "ExitMaintenanceMode_Task") == window.booted() and trial.free()
    done = window.run(esxi_host_accepted_stops=["vsan_resync"])
    assert done.rc == 0, done.out
    assert window.booted() == dict.fromkeys(HOSTS, 1)


@pytest.mark.slow
def test_no_further_host_leaves_service_while_a_host_does_not_respond(trial: Trial) -> None:
    window = Window(trial)
    running = trial.ansible.start(*window.command(esxi_host_accepted_stops=["out_of_service", "max_out_of_service"]))
    started = has_started(trial.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    trial.vcenter.set_host("esx04.lab", connection="notResponding")
    out = running.communicate(timeout=LONG)[0]
    assert running.returncode != 0 and "esx04.lab: it does not respond (notResponding)" in words(out), out
    assert "worker04 of the job runs on it" in words(out), out
    assert len(window.booted()) == 1 and trial.moved() == []
    assert times(trial.vcenter.writes(), "ExitMaintenanceMode_Task") == window.booted() and trial.free()


@pytest.mark.slow
def test_a_window_is_not_continued_with_another_profile(trial: Trial) -> None:
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


@pytest.mark.slow
def test_a_new_window_takes_the_place_of_one_that_began_with_another_profile(trial: Trial) -> None:
    window = Window(trial)
    running = trial.ansible.start(*window.command())
    wait_for(lambda: sum(window.booted().values()) == 2 or running.poll() is not None, LONG)
    kill_all(running)
    other = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
    trial.vcenter.clear()
    done = window.run(esxi_host_profile=other, window_settings="new")
    assert done.rc == 0, done.out
    assert window.booted().keys() == set(HOSTS) and max(window.booted().values()) <= 2
    assert trial.free() and len([*(trial.folder / "tests").glob("*/journal.jsonl")]) == 2
    trial.vcenter.clear()
    again = window.run(esxi_host_profile=other)
    assert again.rc == 0 and trial.vcenter.writes() == [], again.out


@pytest.mark.slow
def test_a_driver_that_loads_after_the_boot_does_not_cost_a_second_reboot(trial: Trial) -> None:
    window, free = Window(trial), {"hosts": [HOSTS[-1]]}
    for module, options in (
        ("esxi_power", {"state": "maintenance"}),
        ("esxi_graphics", {"type": "shared", "restart_xorg": True}),
        ("esxi_power", {"state": "in_service"}),
    ):
        assert trial.ansible.module(module, **free, **options).changed
    trial.vcenter.clear()
    # Longer than a busy machine takes from the boot to the first check, shorter than the window waits.
    trial.vcenter.set_host("esx05.lab", driver_seconds=40)
    done = window.run(esxi_host_profile={"graphics": {"type": "shared_direct"}})
    assert done.rc == 0, done.out
    assert window.booted() == {"esx05.lab": 1} and trial.moved() == []


def test_a_run_of_another_kind_is_not_continued(trial: Trial, tmp_path: Path) -> None:
    """An unfinished window is not a vMotion test: the playbook would reboot hosts."""
    folder = tmp_path / "tests" / "gpu-one"
    folder.mkdir(parents=True, mode=0o700)
    settings = {**SETTINGS, "window": {"hosts": HOSTS, "profile": PROFILE}}
    (folder / "journal.jsonl").write_text(json.dumps({"at": 1.0, "key": "start", "value": settings}) + "\n")
    (folder / "journal.jsonl").chmod(0o600)
    done = trial.run()
    assert done.rc != 0 and trial.vcenter.writes() == [], done.out
    assert "it has an unfinished maintenance window, not a vMotion test" in words(done.out), done.out


@pytest.mark.slow
def test_a_window_whose_job_ended_while_no_controller_ran_is_finished(trial: Trial) -> None:
    end = trial.folder / "end"
    window = Window(trial, f"--checkpoint-file={end}", "--stop-after-checkpoint")
    running = trial.ansible.start(*window.command())
    started = has_started(trial.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    kill_all(running)
    end.touch()
    trial.nodes.ended()

    done = window.run()

    assert done.rc == 0, done.out
    assert window.booted() == dict.fromkeys(HOSTS, 1) and trial.free()
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"


def test_a_named_job_that_does_not_run_is_refused_before_the_first_write(trial: Trial) -> None:
    window = Window(trial)
    trial.nodes.stop()
    profile = {"advanced_options": {"Net.TcpipHeapSize": 16}}

    text = refused_before_a_write(trial, window, maintenance_job=window.job, esxi_host_profile=profile)

    assert "does not run, it is stopped; start it, then test." in text
