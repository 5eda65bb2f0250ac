"""The frame of a vMotion test and of a maintenance window: what surrounds the moves of a running job; pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...durable.program import Program
from ..evidence.outcome import outcome
from ..steps.ending import close, finish, judge_the_end, keep_end_of_watch, leave
from ..steps.holding import drs_override, lock_of_cluster, watch_of_records
from ..steps.opening import measure, prepare, require_same_vcenter
from ..steps.trial import Trial


def around_job(p: Program, trial: Trial, part: Callable[[Program, Trial], None]) -> str:
    """Make moves around a running job, and return why that failed; empty if the job is continuous and all moved.

    An error ends the moves, for each later controller too. In any case, the job is judged, DRS and the lock are
    released, and the evidence is written.
    """
    p.ensure(partial(require_same_vcenter, trial, p.written("cluster")))
    with lock_of_cluster(p, trial):
        make_moves(p, trial, part)
    conclude(p, trial)
    return outcome(trial.facts, trial.site.folder, p.left)


def make_moves(p: Program, trial: Trial, part: Callable[[Program, Trial], None]) -> None:
    """Make the moves while the lock of the cluster is held."""
    with p.attempt("the test") as whole:
        prepare(p, trial)
        with watch_of_records(p, trial):
            with p.attempt("the moves") as made, drs_override(p, trial):
                measure(p, trial)
                part(p, trial)
            close(trial, made)
            finish(p, trial)
            keep_end_of_watch(p, trial)
    close(trial, whole)


def conclude(p: Program, trial: Trial) -> None:
    """Judge the job after the last move, and write the evidence."""
    judge_the_end(p, trial)
    leave(p, trial)
