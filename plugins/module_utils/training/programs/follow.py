"""Program: follow the job of a run to its end, and stop one that makes no step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...durable.calls import Result
from ...durable.program import Program
from ...errors import CollectionError
from ...watch.live_pace import longest_silence
from ..runs.any_job import OwnJob
from ..runs.controller_site import Followed, TrainingCalls
from ..runs.run_watch import RunWatch, where_ranks_are, who_waits
from ..runs.training_run import GROUP, SLURM, TrainingFailed, TrainingRun

ALIVE = ("running", "waiting")
# After the last records, the launcher or Kubernetes reports the end of the job within this time.
LOOK_SECONDS = 60.0
# The time between two questions about a job that waits: each of them asks Slurm for its whole queue.
QUEUE_SECONDS = 15.0
# A watch has opened its connections within this time.
WATCH_SECONDS = 60.0


ForRuns = Callable[[Sequence[TrainingRun]], None]


@dataclass(frozen=True)
class TrainingSite:
    """The world of runs: modules, the job of each run, and the folder of the training library.

    ``submit_array`` submits prepared runs as one job, and ``cancel_runs`` cancels them, if a batch system can do so.
    """

    calls: TrainingCalls
    job_of: Callable[[TrainingRun], OwnJob]
    library: str
    results: str = ""
    submit_array: ForRuns | None = None
    cancel_runs: ForRuns | None = None


@dataclass(frozen=True)
class Ended:
    """The end of a job: its last state and the last pace."""

    looked: Result
    followed: Followed

    @property
    def job(self) -> dict[str, Any]:
        return dict(self.looked["job"])

    @property
    def is_of_machine(self) -> bool:
        """Return whether a failure of a machine ended the job, so that another attempt may succeed."""
        return bool(self.job.get("machine"))


def follow(p: Program, site: TrainingSite, run: TrainingRun, watch: RunWatch) -> Ended:
    """Show the pace of a job until it ends. It only reads, so each controller repeats all of it."""
    # Not the start of the job, which the launcher's clock dates.
    began = p.now()
    while True:
        followed = p.ensure(watch.show_pace)
        if followed["ended"] == "due":
            p.ensure(watch.copy_outputs)
            continue
        looked = _look(p, site, run, followed)
        if "job" not in looked:
            looked = _look_after_return(p, site, run, looked, followed)
        job = looked["job"]
        if _has_later_records(job, followed):
            followed = p.ensure(partial(watch.read_again, job["state"]))
        _require_records(p, run, watch, job, followed, began)
        if job["state"] not in ALIVE:
            return Ended(looked, followed)
        if followed["ended"] == "apart":
            return _stopped(p, site, run, Ended(looked, followed), apart_remedy(str(followed["pace"]["apart"])))
        if _is_silent(p, run, followed, began):
            return _stopped_silent(p, site, run, Ended(looked, followed))


def await_start(p: Program, site: TrainingSite, run: TrainingRun) -> None:
    """Wait while the job is in a queue, and show its place there when that changes."""
    shown, own = "", site.job_of(run)
    while own.may_wait:
        job = p.ensure(own.look).get("job") or {}
        if job.get("state") != "waiting":
            return
        p.say(str(job.get("why") or "") if job.get("why") != shown else "")
        shown = str(job.get("why") or "")
        p.wait(lambda: False, QUEUE_SECONDS)


def _has_later_records(job: Mapping[str, object], followed: Followed) -> bool:
    """Return whether a job that has ended may have made steps whose records were not read yet.

    The launcher may answer before slow nodes have sent their last records, and the number of steps may be an estimate.
    """
    is_awaited = job["state"] == "finished" or followed["ended"] == "finished"
    return job["state"] not in ALIVE and is_awaited and followed["ended"] != "ended"


def _look(p: Program, site: TrainingSite, run: TrainingRun, followed: Followed) -> Result:
    """Return the state of the job; one that has made all its steps is about to end."""
    answers: list[Result] = []

    def has_settled() -> bool:
        answers.append(site.job_of(run).look())
        job = answers[-1].get("job")
        return job is None or job["state"] not in ALIVE or followed["ended"] != "finished"

    p.wait(has_settled, LOOK_SECONDS)
    return answers[-1]


def _look_after_return(p: Program, site: TrainingSite, run: TrainingRun, looked: Result, followed: Followed) -> Result:
    """Return the answer of a launcher that was rebooted; only a run with another attempt waits for it."""
    if run.has_another_attempt:
        p.say(f"waits up to {run.o['attempt_wait']} s for the launcher {run.launcher}, which does not respond")
        p.wait(lambda: not unreachable(site.calls, [run.launcher]), float(run.o["attempt_wait"]))
        again = p.ensure(lambda: site.job_of(run).look())
        if "job" in again:
            return again
    reason = str(looked.get("msg") or "-").strip()
    raise TrainingFailed(
        f"The launcher {run.launcher} of the training job {run.dir} did not report the state of the job ({reason}); "
        f"the last observed step was {followed['pace']['step']}: restore the launcher and run the same command "
        f"again with training_name={run.name}, which continues the job if it still runs."
    )


def unreachable(calls: TrainingCalls, nodes: Iterable[str]) -> list[str]:
    """Return the nodes that do not respond."""
    answers = calls.on_each("ansible.builtin.ping", {node: {} for node in nodes})
    return [node for node, answer in answers.items() if answer.get("failed")]


def _require_records(
    p: Program, run: TrainingRun, watch: RunWatch, job: Mapping[str, Any], followed: Followed, began: float
) -> None:
    """Fail if the records of a job are not collected; the job itself may be healthy."""
    if job["state"] in ALIVE and followed["ended"] == "unwatched":
        raise TrainingFailed(
            f"{run.job} runs, but its step records are no longer collected; the last observed step was "
            f"{followed['pace']['step']}. Run the same command again with training_name={run.name}, which "
            "continues the job."
        )
    if not followed["has_records"] and (job["state"] == "finished" or p.now() - began > WATCH_SECONDS):
        raise TrainingFailed(
            f"The step records of {run.job[:1].lower()}{run.job[1:]}, which is {job['state']}, are not collected: the "
            f"watch on the controller did not start ({p.ensure(watch.why_it_ended)})."
        )


def _is_silent(p: Program, run: TrainingRun, followed: Followed, began: float) -> bool:
    """Return whether a job made no step for too long. A script without any reported step may never report one."""
    o, last = run.o, followed["last_seen"]
    if o["steps_by"] == "none" or (last is None and o["command"]):
        return False
    since = began if last is None else float(last)
    return p.now() - since > _longest_silence(run, followed)


def _longest_silence(run: TrainingRun, followed: Followed) -> float:
    return longest_silence(int(run.o["silence"]), followed["pace"]["phase"] or "train")


def _stopped_silent(p: Program, site: TrainingSite, run: TrainingRun, last: Ended) -> Ended:
    """Stop a job that makes no step, and return its end; nodes that do not respond are its cause."""
    pace, seconds = last.followed["pace"], _longest_silence(run, last.followed)
    gone = p.ensure(lambda: unreachable(site.calls, run.nodes))
    where = p.ensure(lambda: " ".join(filter(None, (where_ranks_are(site.calls, run), who_waits(site.calls, run)))))
    # The step says nothing about the cause: ranks that wait for another one have made as many.
    slowest = f"The slowest rank was {pace['slowest']} on {pace['host']}. Check the nodes and the network"
    cause = where or (f"Unreachable: {', '.join(gone)}" if gone else slowest)
    return _stopped(p, site, run, last, f"it made no step for {seconds:.0f} s, at step {pace['step']}. {cause}", gone)


def _stopped(
    p: Program, site: TrainingSite, run: TrainingRun, last: Ended, why: str, gone: Sequence[str] = ()
) -> Ended:
    """Stop a job and return its end; processes may remain on nodes that do not respond."""
    try:
        p.ensure(lambda: site.job_of(run).stop())
    except CollectionError as error:
        why = f"{why.rstrip('.')}. {error}"
        if not gone:
            raise TrainingFailed(f"{run.job}: {why}") from error
    end = {
        "state": "stopped",
        "why": f"stopped: {why.rstrip('.')}",
        "machine": bool(gone),
        "node": next(iter(gone), None),
    }
    return Ended({**last.looked, "job": {**last.job, **end}}, last.followed)


def apart_remedy(apart: str) -> str:
    """Return what to do about ranks that train separate models."""
    return (
        f"{apart}. Let the program form a process group of all ranks, such as with num_nodes={{nodes}} of "
        f'Lightning\'s Trainer, or accept it with -e \'{{"training_accept": ["{GROUP}"]}}\''
    )


def stop_command(run: TrainingRun) -> str:
    return f"ansible-playbook -i INVENTORY dml.vsphere.stop -e training_name={run.name}{_backend(run)}"


def follow_command(run: TrainingRun) -> str:
    return f"ansible-playbook -i INVENTORY dml.vsphere.train -e training_name={run.name}{_backend(run)}"


def _backend(run: TrainingRun) -> str:
    """Return the option without which a command would not find a job in Slurm."""
    return f" -e training_backend={SLURM}" if run.o["backend"] == SLURM else ""
