"""The first part of a window by restart beside other jobs: their workers move, while all jobs train; pure."""

from __future__ import annotations

from functools import partial

from ...core.findings import listed
from ...durable.program import Program
from ..evidence.outcome import broken
from ..evidence.restart_lines import BROKEN
from ..steps import workers_off
from ..steps.trial import Trial
from .around_job import conclude, make_moves
from .maintenance_window import change_all

# The hosts that change before the job stops.
FIRST = "hosts of other jobs"


def move_others(p: Program, trial: Trial) -> bool:
    """Change the hosts that other jobs leave by moves; return whether this hurt no job, so that its own may stop."""
    facts = trial.facts
    # A window that an earlier version began has come further.
    is_late = p.written("job") is not None and p.written(FIRST) is None
    facts.first_hosts = [] if is_late else p.once(FIRST, partial(first_hosts, trial))
    if not facts.first_hosts:
        return True
    p.say(f"changes {listed(facts.first_hosts)} before the job stops: workers of other jobs move")
    make_moves(p, trial, change_all)
    conclude(p, trial)
    # The transport of workers without a rank of the job cannot be verified: the window goes on.
    judged = (facts.judged or {}).get("verdict", BROKEN)
    return not (facts.stopped or facts.failures or facts.lost or p.left or judged == BROKEN or broken(facts.other_jobs))


def first_hosts(trial: Trial) -> list[str]:
    """Return the hosts that other jobs leave by moves; refuse what would fail on the rest after the stop."""
    trial.facts.at = workers_off.places_of(trial)
    first = workers_off.left_by_moves(trial)
    if first:
        workers_off.concerned(trial, trial.facts.waiting_after(first))
    return first
