"""The program of a vMotion test: move every worker while its job trains, and judge whether the job continued; pure."""

from __future__ import annotations

from collections.abc import Collection

from ...continuity.judged_facts import Move
from ...durable.program import Program
from ...errors import WholeError
from ..evidence.facts import Facts
from ..steps import jobs_beside
from ..steps.opening import not_applicable, planned
from ..steps.trial import Trial
from ..steps.wave_of_moves import move_alone, start_round, wave
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


def move_idle_worker_first(p: Program, trial: Trial) -> bool:
    """Move the idle worker, and return whether the test may continue."""
    if not trial.settings["canary"]:
        return True
    p.say("asks vCenter whether a worker has ever moved")
    first = p.once("first worker", lambda: first_worker(trial))
    if not first["worker"]:
        p.say("" if first["ever"] else _moved_by_no_user(trial.facts.cluster))
        return True
    p.say("plans the move of a worker without a rank, which goes first")
    trial.facts.left = [p.once("plan of the first worker", lambda: _plan(trial, first["worker"]))]
    move_alone(p, trial)
    return not trial.facts.stopped


def _moved_by_no_user(cluster: str) -> str:
    return f"no worker of cluster {cluster} has ever moved, and a rank runs on each: one of these moves first"


def first_worker(trial: Trial) -> dict[str, object]:
    """Name the worker that goes first, and the number of moves that the cluster has had."""
    moves = trial.of_cluster("vmotion_info", since=0.0)["moves"]
    ever = sum(bool(move["ok"]) for move in moves)
    if ever:
        return {"ever": ever, "worker": ""}
    busy = jobs_beside.busy_workers(trial) if trial.facts.settings["canary"] == "auto" else ()
    return {"ever": ever, "worker": idle_worker(trial.facts, busy)}


def idle_worker(facts: Facts, busy: Collection[str] = ()) -> str:
    """Return a worker on which no rank runs, nor another job (``busy``), or the one that the settings name.

    If the host name of a rank does not match a worker, the rank may run on any of them, and none counts as idle.
    """
    if facts.settings["canary"] != "auto":
        return str(facts.settings["canary"])
    free = sorted(set(facts.at) - set(facts.ranks) - set(busy)) if set(facts.ranks) <= set(facts.at) else []
    return free[0] if free else ""


def _plan(trial: Trial, worker: str) -> Move:
    planned = trial.of_cluster("vmotion_plan", one_per_host=trial.settings["one_per_host"], workers=[worker])
    reason = not_applicable(trial.facts.cluster, planned)
    if reason:
        raise WholeError(reason)
    move: Move = planned["moves"][0]
    return move
