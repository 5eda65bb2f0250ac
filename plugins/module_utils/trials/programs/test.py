"""The program of a vMotion test: move every worker while its job trains, and judge whether the job continued; pure."""

from __future__ import annotations

from ...durable.program import Program
from ..steps.canary import move_idle_worker_first
from ..steps.opening import planned
from ..steps.trial import Trial
from ..steps.wave_of_moves import start_round, wave
from .around_job import around_job


def test(p: Program, trial: Trial) -> str:
    """Return why the test failed; empty if the job is continuous and every worker moved."""
    return around_job(p, trial, moves)


def moves(p: Program, trial: Trial) -> None:
    """Move an idle worker first, then every worker once in each round; stop after a breach or a failed move."""
    facts = trial.facts
    if not move_idle_worker_first(p, trial):
        return
    while not facts.must_stop and is_due(p, trial):
        plan = planned(p, trial, ("plan", facts.round + 1))
        start_round(p, trial, plan, plan["moves"])
        while facts.left and not facts.must_stop:
            wave(p, trial)


def is_due(p: Program, trial: Trial) -> bool:
    """Return whether another round follows, by the number of rounds or by the time."""
    number, settings = trial.facts.round, trial.settings
    if number < int(settings["rounds"]) or not settings["duration"]:
        return number < int(settings["rounds"])
    return bool(p.once(("time after round", number), p.now) < trial.facts.began + float(settings["duration"]))
