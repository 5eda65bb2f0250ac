"""playbooks/vmotion_test.yml with its own job: started for it, found by the next run, and ended with the test."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.ansible import PYTHON
from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.test_vmotion_test import LONG, PROGRAM, WORKERS, Trial, trial

__all__ = ["trial"]  # the fixture


def command(trial: Trial) -> list[str]:
    """The playbook on an inventory of a cluster and its workers, all nodes of which are this machine."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}
    groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": dict.fromkeys(WORKERS, here)}}
    inventory = trial.folder / "own.yml"
    inventory.write_text(json.dumps({"all": {"children": groups}}))
    given: dict[str, Any] = {
        "training_command": [sys.executable, "-u", str(PROGRAM)],
        "training_runs": str(trial.folder / "runs"),
        "training_dir": str(trial.folder / "library"),
        "training_results": str(trial.folder / "results"),
        "training_remote_shell": str(trial.nodes.shell),
        "training_remote_python": sys.executable,
        "training_watched": WORKERS[:1],
        # The jobs of other tests run here too: none of them counts as a second job.
        "continued_runs": ".*",
        "vmotion_test_workers": WORKERS[:1],
        "vmotion_test_dir": str(trial.folder / "tests"),
        "vmotion_test_warmup_steps": 2,
        "vmotion_test_finish_timeout": 2,
        "vmotion_test_limits": {"max_gap_s": 30, "resume_deadline_s": 30},
    }
    return ["playbooks/vmotion_test.yml", "-i", str(inventory), "-e", json.dumps(given)]


@pytest.mark.slow
def test_job_of_the_test_outlives_its_controller(trial: Trial) -> None:
    running = trial.ansible.start(*command(trial))
    moving = has_started(trial.vcenter, "RelocateVM_Task")
    wait_for(lambda: moving() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    kill_all(running)
    done = trial.ansible.playbook(*command(trial), timeout=LONG)
    assert done.rc == 0, done.out
    (run,) = (trial.folder / "runs").iterdir()
    assert trial.moved() == WORKERS[:1]
    job = json.loads((run / "run.json").read_text())
    trial.nodes.run_dir = run
    assert trial.nodes.look()["state"] == "stopped", "it was started for the test and ends with it"
    assert trial.nodes.processes({"run_id": trial.nodes.look()["run_id"], "job": job["job"]}) == []
    settings = json.loads(trial.kept("journal.jsonl").splitlines()[0])["value"]
    assert (settings["ends_job"], settings["run_dir"], settings["launcher"]) == (True, str(run), WORKERS[0])
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"
