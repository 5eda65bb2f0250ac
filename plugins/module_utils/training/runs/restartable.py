"""The protocol of a job that a maintenance window restarts: checkpoints, stop, next attempt; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Mapping, NoReturn, Protocol, Sequence, TypedDict

from ...durable.calls import ReachedNode, Result
from ...errors import Refused, WholeError
from ..ending.job_state import JobState
from .any_job import RunPlace
from .controller_site import TrainingCalls
from .run_watch import RunWatch

# Who stops a job for a window; the user and the controller may differ when it continues.
WINDOW = "the maintenance window of"
SIGNALS = ("TERM", "USR1", "USR2")


class SeenCheckpoint(TypedDict):
    """A checkpoint on a node: it is complete since a time of the observer, unless ``why`` says why it is not."""

    path: str
    kind: str
    why: str
    step: int | None
    since: float
    parts: int
    bytes: int
    optimizer: bool | None


class Checkpoints(TypedDict):
    """The newest complete checkpoint of a job, a newer one that is not complete, and the usual seconds between two."""

    folder: str
    newest: SeenCheckpoint | None
    torn: SeenCheckpoint | None
    interval: float | None
    why: str


class NamedJob(TypedDict, total=False):
    """A job of another tool that the user names, with its place and its commands, and the folder of the results."""

    run_dir: str
    records: str
    nodes: Sequence[ReachedNode]
    launcher: str
    user: str
    kubernetes: Mapping[str, str]
    slurm: Mapping[str, str]
    checkpoints: str
    stop: str | Sequence[str]
    start: str | Sequence[str]
    results: str


class Restartable(Protocol):
    """One attempt of a job that can be stopped at a checkpoint, and started again from it."""

    name: str

    def refusal(self) -> str:
        """Return why the job cannot be restarted; empty if it can. It is asked before anything is stopped."""

    def by_owner(self) -> str:
        """Return the run with which another user continues the job; empty without one."""

    def state(self) -> JobState:
        """Return the state of this attempt."""

    def stopped_by_owner(self) -> str:
        """Return how another user has stopped this attempt; empty if it runs, ended, or was stopped by a window."""

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints as they are on the nodes now."""

    def ask_for_checkpoint(self, signal: str, seconds: float) -> None:
        """Send a signal to the ranks on all nodes; for some seconds, an end of the job counts as that of the window."""

    def withdraw(self) -> None:
        """Let the job continue as if it had not been asked to end."""

    def free_nodes(self) -> None:
        """Let other jobs have the nodes that a stop has kept for the next attempt."""

    def stop(self) -> JobState:
        """Stop the job, unless it has ended, and return its state; raise if a process of it remains."""

    def start_again(self, checkpoint: SeenCheckpoint, down: Mapping[str, object] | None = None) -> RunPlace:
        """Start the next attempt from a checkpoint, unless it was started before, and return where it runs.

        ``down`` divides the time since the stop, for the verdict. ``by_owner`` is the run with which another user
        continues the job, in the place of this attempt.
        """

    def watch(self) -> RunWatch:
        """Return the watch of the records of this attempt, from which the verdict on its restart is made."""

    def judged(self) -> Result:
        """Return the verdict on the restart with which this attempt began."""

    def machines(self) -> Sequence[ReachedNode]:
        """Return how the controller reaches the machines of the job, also while no process of it runs there."""


class NotRestartable:
    """A job that cannot be restarted, because of ``why``."""

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    def refusal(self) -> str:
        """Return why the job cannot be restarted."""
        return self._why

    def _refuse(self, *_options: object) -> NoReturn:
        raise WholeError(self._why)

    by_owner = stopped_by_owner = state = checkpoints = ask_for_checkpoint = withdraw = free_nodes = _refuse
    stop = start_again = watch = judged = machines = _refuse


class Ranks:
    """The running ranks of a job, which their records in a folder on its nodes identify."""

    def __init__(self, calls: TrainingCalls, nodes: Sequence[ReachedNode], folder: str, name: str) -> None:
        self._calls, self._nodes, self._folder, self._name = calls, list(nodes), folder, name

    def found(self, signal: str = "") -> tuple[list[str], int]:
        """Return the ranks that run, and the size of the job, and send a signal to them, or to none of them."""
        answer = self._calls.nodes.signal_ranks(self._nodes, self._folder, signal)
        if answer["errors"]:
            cause = "; ".join(f"{node}: {error}" for node, error in answer["errors"].items())
            raise self._refused(cause, "restore these nodes, or wait without a signal")
        return [str(rank) for rank in answer["ranks"]], int(answer["size"])

    def ask(self, signal: str, size: int, before: Callable[[], None]) -> None:
        """Send a signal to all ranks, after ``before``; a ``size`` of 0 is unknown, so that of the records counts."""
        if signal not in SIGNALS:
            raise self._refused(f"the signal is {signal}", f"choose one of {', '.join(SIGNALS)}")
        ranks, known = self.found()
        if len(ranks) != (size or known):
            cause = f"their records identify {len(ranks)} of {size or known} running processes"
            raise self._refused(cause, "wait for its next regular checkpoint, without a signal")
        before()
        self.found(signal)

    def _refused(self, cause: str, remedy: str) -> Refused:
        return Refused(self._name, "ask its ranks for a checkpoint", cause, remedy)


def checkpoints_of(read: Mapping[str, Any], folder: str, now: float) -> Checkpoints:
    """Return the checkpoints that training_info read; ``now`` is the time of the observer."""
    seen = [_seen(each, now) for each in read["seen"]]
    newest = next((each for each in seen if not each["why"]), None)
    torn = next((each for each in seen if each["why"]), None)
    why = "" if newest else f"{folder} contains no complete checkpoint"
    why += f": {torn['path']}: {torn['why']}" if torn and not newest else ""
    return {"folder": folder, "newest": newest, "torn": torn, "interval": read.get("interval"), "why": why}


def _seen(read: Mapping[str, Any], now: float) -> SeenCheckpoint:
    """Return a checkpoint with a time of the observer, whose clock may differ from that of the node."""
    return {
        "path": str(read["path"]),
        "kind": str(read["kind"]),
        "why": str(read["why"]),
        "step": read.get("step"),
        "since": now - float(read["age"]),
        "parts": int(read["parts"]),
        "bytes": int(read["bytes"]),
        "optimizer": read.get("optimizer"),
    }
