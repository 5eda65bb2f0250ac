"""Each kind of job keeps the same contract: its state, its checks, its acknowledgement and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.jobs.running_job import job_from, required_to_run
from plugins.module_utils.kubernetes.job_kinds import KINDS
from plugins.module_utils.kubernetes.mpijob import ANNOTATION
from plugins.module_utils.kubernetes.own_mpijob import OwnMpiJob
from plugins.module_utils.slurm.own_job import OwnSlurmJob
from plugins.module_utils.training.runs.any_job import Job, OwnMpirun
from tests.fakes.training_world import TrainingWorld

SLURM = {"running": "RUNNING", "finished": "COMPLETED", "died": "FAILED", "stopped": "CANCELLED", "waiting": "PENDING"}
RUN = {"launcher": "w1", "run_dir": "/runs/one", "records": "/runs/one"}


class Site(TrainingWorld):
    """One job in a state, as its launcher, Slurm and the API server of Kubernetes report it."""

    def __init__(self, state: str) -> None:
        super().__init__(backend="kubernetes", kubernetes={"image": "i", "namespace": "ml"})
        self.state = state

    def ask(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return self.on("w1", module, options)

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return self.ask(module, options)

    def on(self, host: str, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        answer: Callable[..., Any] = getattr(self, f"_{module.rpartition('.')[2]}")
        return dict(answer(host, options) or {})

    def _training_info(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"job": {"state": self.state, "run_id": "r1"}}

    def _mpijob_info(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"findings": []} if "gather" in options else {"job": {"state": self.state}, "log": ""}

    def _training_job(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        assert options["state"] == "stopped"
        self.state = "stopped"
        return {"changed": True}

    def _k8s(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        assert options["state"] == "absent"
        self.state = "absent"
        return {"changed": True}

    def _k8s_info(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"resources": [{"metadata": {"annotations": {ANNOTATION: "2026-11-29T09:00:00+0000"}}}]}

    def _stat(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"stat": {"exists": True, "mtime": 5.0}}

    def _command(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        words, state = list(options["argv"]), SLURM.get(self.state, "CANCELLED")
        if words[0] == "scancel":
            self.state = "stopped"
        is_own = any(word.startswith("--name=") for word in words)
        row = f"7|dml-one|{state}|None|N/A|dml|dml:r1" if is_own else f"7|{state}|None|anna|w1|w1"
        starts = "   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0"
        answers = {
            "squeue": row,
            "scontrol": starts,
            "sinfo": "w1|w1|192.0.2.1|allocated|none",
            "dd": "",
            "scancel": "",
        }
        return {"stdout": answers[words[0]]}


def named(**more: Any) -> Callable[[Site], Job]:
    return lambda site: job_from(site.here, site.ask, {**RUN, **more}, site.ask)


JOBS: dict[str, Callable[[Site], Job]] = {
    "somebody's mpirun": named(),
    **{f"somebody's {kind.kind}": named(kubernetes={"name": "one", "api": api}) for api, kind in KINDS.items()},
    "somebody's in Slurm": named(slurm={"job": "7", "names": {"w1": "w1"}}),
    "own mpirun": lambda site: OwnMpirun(site, site.run()),
    "own in pods": lambda site: OwnMpiJob(site, site.run()),
    "own in Slurm": lambda site: OwnSlurmJob(site, site.run()),
}


@pytest.fixture(params=JOBS)
def make(request: pytest.FixtureRequest) -> Callable[[Site], Job]:
    return JOBS[str(request.param)]


@pytest.mark.parametrize("state", ["finished", "died", "stopped", "waiting"])
def test_only_a_running_job_is_accepted(make: Callable[[Site], Job], state: str) -> None:
    assert required_to_run(make(Site("running")))["state"] == "running"

    job = make(Site(state))
    with pytest.raises(CollectionError) as refused:
        required_to_run(job)

    assert str(refused.value).startswith(f"{job.name} does not run, it is {state}")


def test_running_job_can_move_and_is_acknowledged(make: Callable[[Site], Job]) -> None:
    job = make(Site("running"))

    assert job.checked(["w1"], 20.0, []) == [] and job.acknowledged() > 0
    assert job.ack.startswith(("touch ", "kubectl annotate ")) and isinstance(job.workers, Mapping)


def test_stopped_job_runs_no_longer(make: Callable[[Site], Job]) -> None:
    job = make(Site("running"))

    job.stop()

    assert job.look()["job"]["state"] in ("stopped", "absent")
