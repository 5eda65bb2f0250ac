"""A maintenance window that people plan, watch, pause and end: Ctrl-C, another controller, limits, hooks, a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from tests.integration.ansible import PYTHON
from tests.integration.killing import has_started, wait_for
from tests.integration.releases import NEWEST
from tests.integration.test_hosts_under_training import Window
from tests.integration.test_vmotion_test import LONG, Trial, trial

__all__ = ["trial"]  # the fixture
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]


def words(text: str) -> str:
    return " ".join(text.split())


def ask(trial: Trial, action: str) -> str:
    """Run the playbook window, as a person in another shell does, and return its output."""
    inventory = trial.folder / "other.yml"
    here = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}
    inventory.write_text(json.dumps({"all": {"children": {"clusters": {"hosts": {"gpu": here}}}}}))
    given = {"window_action": action, "vmotion_test_dir": str(trial.folder / "tests")}
    done = trial.ansible.playbook("playbooks/window.yml", "-i", str(inventory), "-e", json.dumps(given))
    assert done.rc == 0, done.out
    return words(done.out)


def started(trial: Trial, window: Window, **variables: Any) -> subprocess.Popen[str]:
    """A window whose first host reboots."""
    running = trial.ansible.start(*window.command(**variables))
    is_rebooting = has_started(trial.vcenter, "RebootHost_Task", sum(window.booted().values()) + 1)
    wait_for(lambda: is_rebooting() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    return running


def test_refuses_a_request_without_a_window(trial: Trial) -> None:
    refused = trial.ansible.module("maintenance_window", cluster="gpu", action="pause")
    assert refused.rc == 1 and trial.vcenter.writes() == []
    assert "gpu: could not ask its maintenance window to pause: no window runs there" in refused.msg
    assert "gpu: no run holds the lock" in ask(trial, "status")


def test_plan_shows_times_stuns_limits_and_end(trial: Trial) -> None:
    window = Window(trial)
    shown = window.run("--check", window_not_after="23:59", window_max_stall_s=90)
    text = words(shown.out)
    assert shown.rc == 0 and trial.vcenter.writes() == [], shown.out
    assert "esx05.lab: about 18 min, moves before: 0" in text and ", stun about" in text
    assert "without an earlier window: 15 min per reboot" in text and "goodput" in text
    assert "(window_not_after); no host is started that would exceed it" in text and "stall: 90 s in all" in text


@pytest.mark.slow
def test_first_interrupt_pauses_the_window_after_its_host(trial: Trial) -> None:
    window = Window(trial)
    running = started(trial, window)
    os.kill(running.pid, signal.SIGINT)
    out = words(running.communicate(timeout=LONG)[0])
    assert running.returncode == 2, out
    assert "Press Ctrl-C again to end the run now" in out
    assert "the window is paused: 1 of 5 hosts are changed, 4 left" in out and "window_action=end" in out
    assert trial.free()
    status = ask(trial, "status")
    assert (
        "no run holds the lock" in status and "in progress none" in status and "run the playbook hosts again" in status
    )
    done = window.run()
    assert done.rc == 0 and all(number == 1 for number in window.booted().values()), done.out


@pytest.mark.slow
def test_second_interrupt_ends_the_run_and_shows_leftovers(trial: Trial) -> None:
    window = Window(trial)
    running = started(trial, window)
    os.kill(running.pid, signal.SIGINT)
    (folder,) = (trial.folder / "tests").iterdir()
    wait_for(lambda: (folder / "pause").exists() or running.poll() is not None, LONG)
    os.kill(running.pid, signal.SIGINT)
    out = words(running.communicate(timeout=LONG)[0])
    assert running.returncode != 0, out
    assert "the window was interrupted: 0 of 5 hosts are changed, 5 left" in out
    assert "esx05.lab may be out of service, the lock of the cluster is held, and DRS does not move the workers" in out
    assert "Run the playbook again to continue, or dml.vsphere.window with window_action=end to end it" in out

    done = window.run()

    assert done.rc == 0 and all(number == 1 for number in window.booted().values()), done.out
    assert trial.free()


@pytest.mark.slow
def test_second_controller_pauses_watches_and_ends_a_window(trial: Trial) -> None:
    window = Window(trial)
    running = started(trial, window)
    assert "pause" in ask(trial, "pause")
    paused = words(ask(trial, "status"))
    assert "holds the lock" in paused and "requested pause" in paused and "of 5 hosts of a maintenance window" in paused
    ask(trial, "resume")
    is_rebooting = has_started(trial.vcenter, "RebootHost_Task", 2)
    wait_for(lambda: is_rebooting() or running.poll() is not None, LONG)
    ask(trial, "end")
    out = words(running.communicate(timeout=LONG)[0])
    assert running.returncode == 2 and "requested the end. The next run begins with the remaining hosts" in out, out
    assert sum(window.booted().values()) in (2, 3) and trial.free()
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"
