"""playbooks/hosts.yml with window_by=restart: a full cluster is changed while real ranks stop at a checkpoint."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import Simulator
from plugins.module_utils.training.ending.job_state import SIGNAL_REQUEST
from tests.integration.ansible import PYTHON, Ansible, Outcome, Start
from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.releases import NEWEST
from tests.integration.rolling import times
from tests.integration.test_hosts_under_training import PROFILE
from tests.integration.test_training_restarted import TRAIN
from tests.integration.test_vmotion_test import LONG, WORKERS
from tests.integration.training import Nodes
from tests.integration.workers import HOSTS as SITE
from tests.integration.workers import desired

pytestmark = pytest.mark.release(NEWEST)

# Runs of other tests on this machine have other names.
NAME = f"restart{os.getpid()}"
HOSTS = [f"esx{number:02}.lab" for number in range(1, 5)]
# As many hosts as workers: none can move.
FULL = SITE.replace("count: 5", "count: 4")
# A resumed attempt trains on too.
PROGRAM = TRAIN.replace("done + 8 if resume else int(sys.argv[2])", "int(sys.argv[2])")


class FullCluster:
    """Four hosts with a worker each, and a run on nodes of their names, which are all this machine."""

    def __init__(self, vcenter: Simulator, ansible: Ansible, folder: Path) -> None:
        self.vcenter, self.ansible, self.folder, self.nodes = vcenter, ansible, folder, Nodes(ansible, folder)
        here = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON, "ansible_become": False}
        groups = {"clusters": {"hosts": {"gpu": here}}, "workers": {"hosts": dict.fromkeys(WORKERS, here)}}
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))
        self.training: dict[str, Any] = {
            "training_name": NAME,
            "training_python": sys.executable,
            "training_share_nodes": True,
            "training_nodes": ",".join(WORKERS),
            "training_runs": str(folder / "runs"),
            "training_dir": str(folder / "library"),
            "training_results": str(folder / "results"),
            "training_remote_shell": str(self.nodes.shell),
            "training_remote_python": sys.executable,
            "training_watched": WORKERS[:1],
            # The jobs of other tests run on this machine too.
            "continued_runs": ".*",
        }

    def train(self, answer: str = "saves", program: str = PROGRAM, saved: str = "step*.pt", command: Any = ()) -> None:
        """Start the run and wait until it has saved a checkpoint."""
        code = self.folder / "mine"
        code.mkdir()
        (code / "train.py").write_text(program)
        words = command or ["python", "train.py", answer, "5000"]
        started = self.playbook("train", training_folder=str(code), training_command=words, training_follow=False)
        assert started.rc == 0, started.out
        wait_for(lambda: bool(list(self.outputs.glob(saved))), LONG)

    @property
    def outputs(self) -> Path:
        return self.folder / "runs" / NAME / "work" / "outputs"

    def playbook(self, name: str, *arguments: str, **more: Any) -> Outcome:
        return self.ansible.playbook(*self.command(name, *arguments, **more), timeout=LONG)

    def command(self, name: str, *arguments: str, **more: Any) -> list[str]:
        given = json.dumps({**self.training, **more})
        return [f"playbooks/{name}.yml", "-i", str(self.inventory), "-e", given, *arguments]

    def window(self, *arguments: str, **more: Any) -> list[str]:
        given = {
            "under_training": True,
            "esxi_host_profile": PROFILE,
            "esxi_host_moved_by": "module",
            "esxi_host_evidence_dir": str(self.folder / "evidence"),
            "vmotion_test_dir": str(self.folder / "tests"),
            "vmotion_test_steps": 5,
            "max_out_of_service": 2,
            "window_checkpoint_wait": 120,
            **more,
        }
        return self.command("hosts", *arguments, **given)

    def change(self, *arguments: str, **more: Any) -> Outcome:
        return self.ansible.playbook(*self.window(*arguments, **more), timeout=LONG)

    def kept(self, name: str) -> Any:
        (found,) = (self.folder / "tests").glob(f"*/{name}")
        return json.loads(found.read_text())

    def booted(self) -> dict[str, int]:
        return dict(times(self.vcenter.writes(), "RebootHost_Task"))

    def powered(self) -> dict[str, int]:
        """Return the number of shutdowns and of starts of workers."""
        methods = [write["method"] for write in self.vcenter.writes()]
        return {method: methods.count(method) for method in ("ShutdownGuest", "PowerOffVM_Task", "PowerOnVM_Task")}

    def attempts(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "runs").iterdir() if (path / "run.json").exists())


ONCE = {"ShutdownGuest": 4, "PowerOffVM_Task": 0, "PowerOnVM_Task": 4}


@contextmanager
def full_cluster(vcenter: Simulator, folder: Path) -> Iterator[FullCluster]:
    """Build the workers, and stop the runs at the end."""
    ansible = Ansible(vcenter.environment, folder)
    done = ansible.module("worker_vm", **desired())
    assert done.rc == 0, done.out
    vcenter.clear()
    yield FullCluster(vcenter, ansible, folder)
    for run in (folder / "runs").glob("*/run.json"):
        ansible.module("training_job", run_dir=str(run.parent), state="stopped")


@pytest.fixture
def full(start: Start, tmp_path: Path) -> Iterator[FullCluster]:
    with full_cluster(start(text=FULL), tmp_path) as made:
        yield made


@pytest.mark.hosts_out(2)
def test_full_cluster_is_changed_while_its_job_restarts(full: FullCluster) -> None:
    full.train()
    shown = full.change("--check")
    text = " ".join(shown.out.split())
    assert shown.rc != 0 and full.vcenter.writes() == [], shown.out
    assert "by move: impossible" in text and "window_by=restart" in text, shown.out
    assert "the window stops the job right after its next checkpoint" in text and "hosts at once: 2" in text, shown.out

    for by in ("restart", "auto"):
        shown = full.change("--check", window_by=by, window_checkpoint_signal="USR1")
        assert shown.rc == 0 and full.vcenter.writes() == [] and full.attempts() == [NAME], shown.out
    assert not (full.folder / "runs" / NAME / SIGNAL_REQUEST).exists(), "no rank got a signal"
    assert "window_by=auto chooses restart" in shown.out, shown.out

    done = full.change(window_by="auto")

    assert done.rc == 0, done.out
    assert "window_by=auto chooses restart" in done.out and f"{NAME}-2: resumed" in " ".join(done.out.split())
    assert full.booted() == dict.fromkeys(HOSTS, 1) and full.powered() == ONCE
    restart = full.kept("restart.json")
    assert restart["verdict"]["verdict"] == "resumed", restart
    assert [name for name, _seconds in restart["parts"]] == ["workers off", "hosts", "workers on"]
    assert full.attempts() == [NAME, f"{NAME}-2"]
    full.vcenter.clear()
    again = full.change(window_by="auto")
    assert again.rc == 0 and full.vcenter.writes() == [], again.out


@pytest.mark.slow
def test_killed_window_names_its_job_and_ends_as_requested(full: FullCluster) -> None:
    full.train()
    running = full.ansible.start(*full.window(window_by="restart", max_out_of_service=1))
    started = has_started(full.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    kill_all(running)
    where = {"vmotion_test_dir": str(full.folder / "tests")}

    shown = full.playbook("window", **where)
    ended = full.playbook("window", **where, window_action="end")

    text = " ".join(shown.out.split())
    assert (
        "the job is stopped at the checkpoint" in text and "worker01, worker02, worker03, worker04 may be off" in text
    )
    assert len(full.booted()) == 1 and full.powered() == ONCE and full.attempts() == [NAME, f"{NAME}-2"], ended.out
    assert full.kept("restart.json")["verdict"]["verdict"] == "resumed", ended.out


@pytest.mark.slow
def test_worker_that_does_not_start_leaves_the_window_open(full: FullCluster) -> None:
    full.train()
    fault = {"fault": "GenericVmConfigFault", "message": "The PCI device is not available."}
    full.vcenter.fault("PowerOnVM_Task", "task_fails", count=1, **fault)

    left = full.change(window_by="restart", max_out_of_service=1)

    text = " ".join(left.out.split())
    assert left.rc != 0 and "could not power it on: the server said GenericVmConfigFault: The PCI device" in text
    assert "its host has left. Cluster gpu: the job is stopped at the checkpoint" in text, left.out
    assert "worker04 may be off: the playbook hosts, or" in text
    assert full.attempts() == [NAME] and full.booted() == dict.fromkeys(HOSTS, 1), left.out

    again = full.change(window_by="restart", max_out_of_service=1)

    assert again.rc == 0 and full.kept("restart.json")["verdict"]["verdict"] == "resumed", again.out
    assert full.booted() == dict.fromkeys(HOSTS, 1) and full.attempts() == [NAME, f"{NAME}-2"], again.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "reported", "attempts"),
    [
        ("ignores", "no new checkpoint was complete after the signal USR1 within 5 s", 1),
        ("leaves", "it ended after the signal USR1 without a new checkpoint", 2),
    ],
)
def test_signal_without_a_checkpoint_changes_no_host(
    full: FullCluster, answer: str, reported: str, attempts: int
) -> None:
    full.train(answer)
    # A checkpoint of a moment ago would count as the next one.
    os.utime(full.outputs / "step10.pt", (0, 0))

    done = full.change(window_by="restart", window_checkpoint_signal="USR1", window_checkpoint_wait=5)

    assert done.rc != 0 and reported in " ".join(done.out.split()), done.out
    assert full.booted() == {} and full.powered() == dict.fromkeys(ONCE, 0) and len(full.attempts()) == attempts, (
        done.out
    )
