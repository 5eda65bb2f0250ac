"""playbooks/hosts.yml around a job, on workers where another job trains too: each of them gets its verdict."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.integration.killing import has_started, wait_for
from tests.integration.releases import NEWEST
from tests.integration.test_hosts_under_training import HOSTS, Window
from tests.integration.test_vmotion_test import LONG, PROGRAM, WORKERS, Trial, trial
from tests.integration.test_window_refused import words
from tests.integration.training import Nodes

__all__ = ["trial"]  # the fixture
pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]
# A host with a worker, and the spare one.
TWO = HOSTS[3:]


@pytest.fixture
def other(trial: Trial) -> Iterator[Nodes]:
    """Another job on the same workers."""
    folder = trial.folder / "other"
    folder.mkdir()
    nodes = Nodes(trial.ansible, folder)
    nodes.run_dir = folder / f"other-{uuid4()}"
    started = nodes.start(command=[sys.executable, "-u", str(PROGRAM)], hosts=[{"name": name} for name in WORKERS])
    assert started.rc == 0, started.out
    nodes.training()
    yield nodes
    for process in nodes.processes(nodes.look()):
        os.kill(process, signal.SIGCONT)
    nodes.stop()


@pytest.mark.slow
def test_stalled_second_job_ends_the_window(trial: Trial, other: Nodes) -> None:
    window = Window(trial)
    # The jobs of other tests run on this machine too.
    only = {"continued_runs": f"(?!{other.run_dir.name}$)", "esxi_host_hosts": TWO}
    refused = window.run("--check", **only)
    assert refused.rc != 0 and trial.vcenter.writes() == [], refused.out
    assert f"workers of other training jobs: {other.run_dir.name}" in words(refused.out), refused.out

    running = trial.ansible.start(*window.command(accept_other_jobs=True, **only))
    started = has_started(trial.vcenter, "RebootHost_Task")
    wait_for(lambda: started() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    os.kill(other.processes(other.look())[-1], signal.SIGSTOP)
    out = words(running.communicate(timeout=LONG)[0])

    assert running.returncode == 2, out
    assert window.booted() == {TWO[1]: 1} and trial.moved() == [] and trial.free()
    assert f"1 of 2 hosts are changed, 1 left (esx04.lab): the other job {other.run_dir.name}" in out, out
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous"
    (judged,) = json.loads(trial.kept("other_jobs.json"))
    assert judged["verdict"] == "broken" and judged["title"].startswith(other.run_dir.name), judged
    assert any(note.startswith("other job ") for note in json.loads(trial.kept("verdict.json"))["notes"])
