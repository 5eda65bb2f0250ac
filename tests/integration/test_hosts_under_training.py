"""playbooks/hosts.yml around a running job: every host is changed and rebooted while real mpirun trains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.ansible import PYTHON, Outcome
from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.releases import NEWEST
from tests.integration.rolling import times
from tests.integration.test_vmotion_test import LONG, PROGRAM, WORKERS, Trial, trial
from tests.integration.training import FILES, one_card

__all__ = ["trial"]  # the fixture
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]

HOSTS = [f"esx{number:02}.lab" for number in range(1, 6)]
# An option of the RDMA driver, which is active only after a reboot.
PROFILE = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 4}}]}


class Window:
    """The playbook hosts on the cluster of a job whose nodes are all this machine."""

    def __init__(self, trial: Trial, *options: str, by_hand: bool = False) -> None:
        self.trial, self.inventory = trial, trial.folder / "hosts.yml"
        self.mpirun: subprocess.Popen[bytes] | None = None
        here = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON, "ansible_become": False}
        groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": dict.fromkeys(WORKERS, here)}}
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))
        # The jobs of other tests run on this machine too.
        trial.nodes.run_dir = trial.folder / f"run-{uuid4()}"
        program = [sys.executable, "-u", str(PROGRAM), *options]
        if by_hand:
            self._by_hand(program)
            return
        started = trial.nodes.start(command=program, hosts=[{"name": name} for name in WORKERS])
        assert started.rc == 0, started.out
        trial.nodes.training()

    def _by_hand(self, program: list[str]) -> None:
        """Start the program with mpirun, as a person does."""
        nodes, folder = self.trial.nodes, self.trial.nodes.run_dir
        options = ["--host", ",".join(WORKERS), "--mca", "plm_rsh_agent", str(nodes.shell), "--bind-to", "none"]
        exported = ["-x", f"DML_RECORDS={folder}", "-x", f"PYTHONPATH={FILES}"]
        words = ["mpirun", *options, "--mca", "btl", "tcp,self", *one_card(), *exported, *program]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        output = (self.trial.folder / "mpirun.log").open("wb")
        self.mpirun = subprocess.Popen(words, env={**os.environ, **root}, stdout=output, stderr=subprocess.STDOUT)
        wait_for(lambda: all(len(nodes.steps(rank)) > 1 for rank in range(4)) or self.mpirun.poll() is not None, LONG)
        assert self.mpirun.poll() is None, (self.trial.folder / "mpirun.log").read_text()

    def end(self) -> None:
        """End a job that was started by hand."""
        if self.mpirun:
            self.mpirun.terminate()
            self.mpirun.wait(30)

    def command(self, *arguments: str, **variables: Any) -> list[str]:
        given = {
            "under_training": True,
            # The jobs of other tests run on this machine too.
            "continued_runs": ".*",
            "esxi_host_profile": PROFILE,
            "esxi_host_moved_by": "module",
            "esxi_host_evidence_dir": str(self.trial.folder / "evidence"),
            "training_name": self.trial.nodes.run_dir.name,
            "training_watched": WORKERS[:1],
            "vmotion_test_dir": str(self.trial.folder / "tests"),
            "vmotion_test_warmup_steps": 2,
            "vmotion_test_steps": 5,
            "vmotion_test_limits": {"max_gap_s": 30, "resume_deadline_s": 30},
            **variables,
        }
        return ["playbooks/hosts.yml", "-i", str(self.inventory), "-e", json.dumps(given), *arguments]

    @property
    def job(self) -> dict[str, Any]:
        """The job as a user names it."""
        nodes = [{"name": "all", "reach": ["sh", "-c"]}]
        return {"launcher": WORKERS[0], "run_dir": str(self.trial.nodes.run_dir), "nodes": nodes}

    def run(self, *arguments: str, **variables: Any) -> Outcome:
        return self.trial.ansible.playbook(*self.command(*arguments, **variables), timeout=LONG)

    def booted(self) -> dict[str, int]:
        return dict(times(self.trial.vcenter.writes(), "RebootHost_Task"))


def test_changes_and_reboots_every_host_around_the_job(trial: Trial) -> None:
    window = Window(trial)
    done = window.run()
    assert done.rc == 0, done.out
    assert window.booted() == dict.fromkeys(HOSTS, 1)
    assert sorted(trial.moved()) == WORKERS, "each worker moves once"
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["moved"], verdict["breaches"]) == ("continuous", "all", [])
    cost = verdict["cost"]
    # Other load slows the job before the window, or during it: unit tests check the value.
    assert sorted(host["host"] for host in cost["hosts"]) == HOSTS and cost["goodput"] > 0, cost
    assert sorted(number for host in cost["hosts"] for number in host["moves"]) == [1, 2, 3, 4]
    assert "Goodput: " in done.out and "Published figures" in trial.kept("timeline.html")
    changes = json.loads(trial.kept("window.json"))
    assert sorted(change["host"] for change in changes) == HOSTS
    assert all(change["out_at"] < change["back_at"] and change["reboots"] == 1 for change in changes)
    assert trial.free() and trial.nodes.look()["state"] == "running"
    trial.vcenter.clear()
    again = window.run()
    assert again.rc == 0 and trial.vcenter.writes() == [], again.out


@pytest.mark.slow
def test_window_continues_after_its_controller_is_killed(trial: Trial) -> None:
    window = Window(trial)
    running = trial.ansible.start(*window.command())
    started = has_started(trial.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    kill_all(running)
    done = window.run()
    assert done.rc == 0, done.out
    assert window.booted() == dict.fromkeys(HOSTS, 1)
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"
    assert sorted(trial.moved()) == WORKERS and trial.free()


def test_does_not_search_for_a_named_job(trial: Trial) -> None:
    window = Window(trial)
    shown = window.run("--check", maintenance_job=window.job, training_name="no-such-job")
    assert shown.rc == 0 and "esx05.lab is changed, no worker runs on it" in shown.out, shown.out
    assert all(f"before: {worker}" in " ".join(shown.out.split()) for worker in WORKERS)
    assert trial.vcenter.writes() == []


@pytest.fixture
def by_hand(trial: Trial) -> Iterator[Window]:
    """A window around a job that the collection did not start."""
    window = Window(trial, by_hand=True)
    yield window
    window.end()


@pytest.mark.slow
def test_changes_hosts_around_a_job_of_another_tool(trial: Trial, by_hand: Window) -> None:
    assert not (trial.nodes.run_dir / "run.json").exists()
    done = by_hand.run(maintenance_job=by_hand.job)
    assert done.rc == 0, done.out
    assert by_hand.booted() == dict.fromkeys(HOSTS, 1)
    assert sorted(trial.moved()) == WORKERS
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    assert by_hand.mpirun is not None and by_hand.mpirun.poll() is None
    (job,) = [one["value"] for one in _journal(trial) if one["key"] == "job"]
    assert job["launcher"]["pid"] == by_hand.mpirun.pid and trial.free()


def _journal(trial: Trial) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trial.kept("journal.jsonl").splitlines()]
