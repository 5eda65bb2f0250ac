"""Judge the job of a vMotion test: its state, the events of the server, and the verdict on its records; pure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, cast

from ...durable.calls import required
from ...durable.program import Program
from ...moves.plan.results import ServerMoves
from ..evidence.facts import OthersMoves
from . import server_moves
from .holding import require_same_machines
from .trial import Trial

KEPT = ("verdict", "moved", "breaches", "unproven", "notes", "longest_gap_s")
# The values of a job that can change while it runs.
CHANGING = ("state", "launcher", "why", "pods", "silences", "ended")


def judge(p: Program, trial: Trial, of_wave: bool = False) -> None:
    """Judge the job after a wave of moves, after a host change, or before a new controller moves anything."""
    number = trial.judgements = trial.judgements + 1
    p.say("reads the state of the job")
    keep_job(p, trial, p.once(("job", number), lambda: changed_job(p, trial)))
    p.say("asks vCenter for moves and power events that others caused")
    keep_others(p, trial, p.once(("others", number), lambda: others(p, trial)))
    p.say("judges the job")
    trial.facts.keep_verdict(p.once(("judged", number), lambda: verdict(trial)["verdict"]), of_wave)


def review(p: Program, trial: Trial, host: str, why_not: Callable[[], str]) -> None:
    """Judge the job before a host leaves service, and read the time, if only an earlier controller did.

    Both may have changed while no controller was at work. ``why_not`` returns why it is too late for the host.
    """
    key = f"review before {host}"

    def is_reviewed() -> bool:
        return trial.is_current and trial.host_in_time == host

    for attempt in count(1):
        if trial.facts.stopped:
            return
        is_over = p.once((key, attempt), is_reviewed)
        # An earlier controller may have reviewed the job and died before the next effect.
        if is_over and (is_reviewed() or p.is_replaying) and p.written((key, attempt + 1)) is None:
            return
        if not is_over:
            judge(p, trial)
            trial.facts.stopped = trial.facts.stopped or p.once((key, attempt, "time"), why_not)


def changed_job(p: Program, trial: Trial) -> dict[str, Any]:
    """Return the values of the job that can have changed; another machine with the launcher's name has no such job."""
    job = required(trial.job.look())["job"]
    if job["state"] == "absent":
        require_same_machines(p, trial)
    return {key: job.get(key) for key in CHANGING}


def keep_job(p: Program, trial: Trial, job: dict[str, object]) -> None:
    """Keep the job, and show if it has just finished although hosts of its maintenance window remain."""
    waiting = trial.facts.waiting_hosts
    if trial.facts.is_running and job["state"] == "finished" and waiting:
        p.say(f"the job has finished: {', '.join(waiting)} are changed without a verdict on their moves")
    trial.facts.keep_job(job)


def others(p: Program, trial: Trial) -> OthersMoves:
    """Return the moves and power events that others caused."""
    # The ranks of a job may run in several clusters.
    guests = sorted(set(trial.facts.ranks) - set(trial.facts.at))
    more = {"guests": guests} if guests else {}
    result = trial.of_cluster("vmotion_info", since=server_moves.since_when(trial.facts), **more)
    moves: ServerMoves = cast("ServerMoves", result)
    return server_moves.others_in(moves, trial.facts, p.now())


def keep_others(p: Program, trial: Trial, reading: OthersMoves) -> None:
    """Keep the moves and power events of others, and show the new ones."""
    for line in server_moves.lines(reading, trial.facts):
        p.say(line)
    trial.facts.keep_others(reading)


def verdict(trial: Trial) -> dict[str, Any]:
    """Write the facts and judge them; return the verdict and its lines."""
    trial.site.write_facts(trial.facts)
    folder = trial.site.folder
    result = trial.here("continuity_verdict", test=folder, folder=folder, name=f"vmotion_test {trial.facts.cluster}")
    trial.is_current = True
    # An observation needs the silence of each move too.
    kept = (*KEPT, "moves") if trial.settings.get("observe") else (*KEPT, "cost")
    return {"verdict": {key: result[key] for key in kept if key in result}, "lines": result["lines"]}
