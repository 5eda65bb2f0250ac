"""A job that another user submitted to Slurm is requeued as held for a window, and released after its hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.slurm.requeued_job import RequeuedJob
from plugins.module_utils.trials.steps import stopping
from tests.fakes import job_of_owner
from tests.fakes.deaths import histories
from tests.fakes.job_of_owner import GIVEN, WorldOfOwner

JOB: dict[str, Any] = {
    **job_of_owner.JOB,
    "run_dir": "/home/anna/records-7",
    "records": "/home/anna/records-7",
    "checkpoints": "/home/anna/ck",
    "slurm": {"job": 7, "login": "w1", "nodes": ["n1", "n2"], "restarts": 0},
}
# As Slurm 22.05.8 shows the job, while it ends and when it is held.
SHOWN = "JobId=7 JobName=job.sh\n   Requeue={requeue} Restarts={restarts} BatchFlag={batch} Reboot=0 ExitCode=0:0\n"
ENDING, HELD = "COMPLETING|None", "PENDING|job requeued in held state"


class HeldWorld(WorldOfOwner):
    """Two nodes on which Slurm runs job 7; it takes some seconds to end it, and to start it again."""

    def __init__(self, deaths: Iterable[int] = ()) -> None:
        super().__init__(deaths)
        self.state, self.until, self.then = "RUNNING|None", 0.0, ""
        self.requeue, self.batch, self.restarts, self.refusal = 1, 1, 0, ""
        self.done = list[str]()
        self.ends_in = 30.0
        self.ranks_from = 0.0  # the clock at which the batch script has started its ranks

    @property
    def now_shown(self) -> str:
        if self.then and self.clock >= self.until:
            self.state, self.then = self.then, ""
        return self.state

    @property
    def is_running(self) -> bool:
        return self.now_shown == "RUNNING|None"

    def _becomes(self, state: str, then: str, seconds: float) -> None:
        self.state, self.then, self.until = state, then, self.clock + seconds

    def _command(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        words = options["argv"]
        assert host == "w1"
        if words[0] == "squeue":
            found = self.now_shown
            return {"stdout": f"7|{found}|anna|n1|n[1-2]\n"} if found else {"failed": True, "msg": "Invalid job id"}
        if words[0] == "sinfo":
            return {"stdout": "n1|n1|192.0.2.1|allocated|none\nn2|n2|192.0.2.2|allocated|none\n"}
        if words[1] == "show":
            return {"stdout": SHOWN.format(requeue=self.requeue, restarts=self.restarts, batch=self.batch)}
        assert words[2:] == ["7"]
        self.done.append(words[1])
        if self.refusal:
            return {"failed": True, "msg": self.refusal}
        if words[1] == "requeuehold":
            self._becomes(ENDING, HELD, self.ends_in)
        else:
            self.restarts += 1
            self._becomes("PENDING|Resources", "RUNNING|None", 40.0)
        return {}

    @property
    def has_ranks(self) -> bool:
        return self.is_running and self.clock >= self.ranks_from


def job(world: HeldWorld) -> RequeuedJob:
    return RequeuedJob(world, JOB)


def test_each_death_holds_the_job_until_its_release() -> None:
    for world, started in histories(HeldWorld, partial(job_of_owner.restarted, job), pairs=30):
        world.deaths.clear()
        assert job(world).judged()["verdict"] == "inconclusive"
        assert world.done.count("release") == 1 and world.is_running and world.restarts == 1, world.done
        assert (started["run"], started["launcher"], started["run_dir"]) == ("records-7", "w1", JOB["run_dir"])
        assert ("w1", f"{JOB['run_dir']}/stop-request.json") not in world.node_files


@pytest.mark.parametrize("end", ["COMPLETED|None", "FAILED|NonZeroExitCode"])
def test_end_at_the_signal_of_the_window_is_requeued(end: str) -> None:
    world = HeldWorld()
    assert job(world).state()["state"] == "running"
    job(world).ask_for_checkpoint("USR1", 60.0)
    world.state = end

    assert job(world).state()["state"] == "stopped"
    job(world).stop()
    job(world).start_again(GIVEN)

    assert world.signals == [("USR1", "0"), ("USR1", "1")] and world.done == ["requeuehold", "release"]
    world.state = end
    assert job(world).state()["state"] != "stopped", "a later end is not that of the window"


def test_job_that_ends_slowly_counts_as_stopped() -> None:
    world = HeldWorld()
    world.ends_in = 300.0  # a process that the kernel does not end, or the epilog of a site

    with pytest.raises(CollectionError, match="180 s after the request"):
        job(world).stop()
    facts = SimpleNamespace(restart={"stop": {"checkpoint": GIVEN}})
    trial: Any = SimpleNamespace(restartable=lambda: job(world), facts=facts)
    program: Any = mock.Mock()

    assert stopping.start_again(program, trial)["run"] == "records-7", "Slurm holds it as soon as it has ended"
    assert world.done == ["requeuehold", "release"]


def test_job_that_ends_at_a_signal_still_runs() -> None:
    world = HeldWorld()
    job(world).ask_for_checkpoint("USR1", 60.0)
    world.state = ENDING

    assert job(world).state()["state"] == "running", "its checkpoint may not be complete yet"


@pytest.mark.parametrize("state", ["CANCELLED|None", ""])
def test_job_that_its_owner_cancels_while_held_is_named(state: str) -> None:
    world = HeldWorld()
    job(world).stop()
    assert job(world).stopped_by_owner() == ""
    world.state = state  # Slurm forgets a cancelled job after some minutes

    assert job(world).stopped_by_owner() == "cancelled in Slurm"


def test_finished_job_is_neither_requeued_nor_released() -> None:
    world = HeldWorld()
    world.state = "COMPLETED|None"

    assert job(world).stop()["state"] == "finished" and world.done == []
    world.state = ""
    assert job(world).state()["why"] == "Slurm no longer has job 7"


@pytest.mark.parametrize(
    ("change", "reported"),
    [({}, ""), ({"requeue": 0}, "cannot be requeued: only a batch job"), ({"batch": 0}, "cannot be requeued: only")],
)
def test_job_that_cannot_start_again_is_refused(change: dict[str, int], reported: str) -> None:
    world = HeldWorld()
    vars(world).update(change)

    assert reported in job(world).refusal() and bool(reported) == bool(job(world).refusal())


def test_running_job_is_awaited_until_its_ranks_run() -> None:
    world = HeldWorld()
    world.ranks_from = world.clock + 300.0

    job(world).judged()

    assert world.clock >= world.ranks_from


def test_job_that_stays_in_the_queue_is_named() -> None:
    world = HeldWorld()
    job(world).stop()

    with pytest.raises(CollectionError, match=r"900 s after its release, it is PENDING .job requeued in held state"):
        job(world).judged()


def test_refused_release_names_what_slurm_answered() -> None:
    world = HeldWorld()
    job(world).stop()
    world.refusal = "Access/permission denied"

    with pytest.raises(CollectionError, match="job 7 in Slurm: could not release it: Access/permission denied"):
        job(world).start_again(GIVEN)
