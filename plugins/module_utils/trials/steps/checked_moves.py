# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Request the next moves of a vMotion test after checks of the nodes and of Kubernetes; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...continuity.judged_facts import Move
from ...core.findings import WARN, FindingRecord, stops
from ...durable.program import Program
from ..checks import node_findings
from ..evidence import move_lines
from ..evidence.facts import CheckedRequest, MoveRequest, next_wave
from . import gpu_looks
from .holding import renew_lock
from .opening import in_rank_order, rank_list
from .trial import Trial


def checked_request(p: Program, trial: Trial, why_not: Callable[[], str]) -> CheckedRequest:
    """Return the request of the next wave, or why its first move is not made, or that the job must be judged first.

    The job may have changed while no controller was at work: a new one judges it before it moves anything.
    """
    if not trial.is_current:
        return {"is_stale": True}
    renew_lock(p, trial)
    ends = why_not()
    if ends:
        return {"ends": ends}
    findings = [] if trial.facts.outlives_job else [*_of_nodes(p, trial), *_of_kubernetes(p, trial)]
    checked: CheckedRequest = {"findings": findings, "accepted": list(trial.settings["accept"])}
    reasons = stops(findings, trial.settings["accept"])
    if reasons:
        result = {"msg": not_withstood(trial.facts.cluster, reasons)}
        return {**checked, "refused": move_lines.observed(result, trial.facts.left[0], trial.facts.ranks)}
    return {**checked, **request(p, trial)}


def request(p: Program, trial: Trial) -> CheckedRequest:
    """Return the moves of the next wave, each with the state of its worker, and the controller that asks."""
    moves = next_wave(trial.facts.left)
    p.say(_prepares(moves, trial))
    workers, at = [move["worker"] for move in moves], p.now()
    places = trial.of_cluster("vmotion_info", workers=workers, since=at)["places"]
    pending: list[MoveRequest] = [{"move": move, "place": places[move["worker"]], "at": at} for move in moves]
    return {"moves": pending, "controller": trial.site.controller}


def _prepares(moves: Sequence[Move], trial: Trial) -> str:
    workers = {move["worker"] for move in moves}
    lines = " and ".join(move_lines.line(move) for move in moves)
    named = f"the move {lines}" if len(moves) == 1 else f"{len(moves)} moves at once, {lines}"
    inside = [pod for pod in in_rank_order(trial.facts.warm or {}) if pod[1]["worker"] in workers]
    return ", with ".join([f"prepares {named}", *(f"{rank_list(pod['ranks'])} in pod {name}" for name, pod in inside)])


def not_withstood(cluster: str, reasons: Sequence[FindingRecord]) -> str:
    """Return the error that names the findings that stop a move."""
    texts = " ".join(reason["text"] for reason in reasons)
    return f"Cluster {cluster}: {texts} Remove the cause, or accept it with vmotion_test_accept."


def _of_nodes(p: Program, trial: Trial) -> list[FindingRecord]:
    settings = trial.settings
    if not settings["guest_checks"]:
        return []
    # From the second wave on, the health of the GPUs was checked after the wave before.
    sick = [] if trial.facts.moves else gpu_looks.findings(p, trial)
    p.say("checks the timers, licences, checkpoints and drivers of the nodes")
    inside = node_findings.findings(
        trial.site.nodes.read_guests(**trial.nodes, checkpoints=settings["checkpoints"])["nodes"],
        settings["stun_budget"],
        p.now(),
        (trial.managers, trial.site.drivers),
        lasts=float(settings["duration"]),
        minutes=float(settings["checkpoint_minutes"]) if settings["checkpoints"] else 0.0,
    )
    return [*sick, *inside]


def _of_kubernetes(p: Program, trial: Trial) -> list[FindingRecord]:
    workers = [move["worker"] for move in next_wave(trial.facts.left)]
    settings = trial.settings
    if settings["kubernetes"]:
        p.say("checks in Kubernetes whether something would end the job during the move")
    findings = trial.job.checked(workers, settings["stun_budget"], settings["accept"])
    for finding in findings:
        if finding["severity"] == WARN:
            p.say(str(finding["text"]))
    return findings
