"""The plans of moves that a vMotion test asks for, and their lines; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...continuity.judged_facts import Move
from ...moves.plan.results import Wave
from ..evidence import move_lines

KEPT = ("moves", "rdma", "profile", "slots", "stages", "returns", "waves", "clock_offset_s")


def plan_options(
    settings: Mapping[str, Any], hosts: Sequence[str] | None = None, avoided: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the options of vmotion_plan for all moves, or for those that empty these hosts, not to avoided ones."""
    options: dict[str, Any] = {"cluster": settings["cluster"], "one_per_host": settings["one_per_host"]}
    if settings.get("observe"):
        return {**options, "empty_hosts": []}
    if settings.get("window"):
        return {**options, **_emptied(settings["window"], hosts), **({"avoid_hosts": avoided} if avoided else {})}
    options["return_home"] = settings["return_home"]
    if settings.get("max_moves", 1) > 1:
        options.update(max_moves=settings["max_moves"], stun_budget=settings["stun_budget"])
    return {**options, **({"workers": settings["workers"]} if settings["workers"] else {})}


def _emptied(window: Mapping[str, Any], hosts: Sequence[str] | None) -> dict[str, object]:
    """Return the options for a window; moves that vCenter does not support are refused before the first one."""
    mode = {"non_disruptive": True} if window.get("non_disruptive") else {}
    spare = {"spare": window["spare"]} if window.get("spare") else {}
    return {"empty_hosts": list(window["hosts"] if hosts is None else hosts), **mode, **spare}


def not_applicable(cluster: str, planned: Mapping[str, Any]) -> str:
    """Return why a plan leaves nothing to test; empty if there are moves, or hosts to change."""
    if "stages" in planned:
        return ""
    tied = planned["not_applicable"]
    if planned["moves"] and not tied:
        return ""
    why = f"these workers are tied to their hosts by devices: {', '.join(tied)}" if tied else "no worker runs"
    remedy = "name those that can move with vmotion_test_workers"
    return f"Cluster {cluster}: a vMotion test is not applicable: {why}; {remedy}."


def plan_lines(planned: Mapping[str, Any]) -> list[str]:
    """Return a line for each move, after a line for each wave or for each host that leaves service."""
    if "waves" in planned:
        return [line for wave in planned["waves"] for line in _wave_lines(wave, planned["moves"])]
    if "stages" not in planned:
        return [move_lines.line(move) for move in planned["moves"]]
    returns = [f"at the end: {move_lines.line(move)}{_stun(move)}" for move in planned.get("returns") or []]
    return [
        line
        for number, stage in enumerate(planned["stages"], start=1)
        for line in (
            f"{number}. {stage['host']} is changed" + ("" if stage["moves"] else ", no worker runs on it"),
            *(f"   before: {move_lines.line(move)}{_stun(move)}" for move in stage["moves"]),
        )
    ] + returns


def _stun(move: Move) -> str:
    """Return the expected stun of a move; empty if it is not known."""
    return "" if move.get("stun_s") is None else f", stun about {move['stun_s']:.0f} s"


def _wave_lines(wave: Wave, moves: Sequence[Move]) -> list[str]:
    """Return the lines of a wave: its number, its moves, and why it is not larger."""
    number = int(wave["moves"])
    lines = [f"   {move_lines.line(move)}" for move in moves if move["wave"] == wave["wave"]]
    waits = [f"   {wave['waits']} waits: {wave['reason']}"] if wave.get("reason") else []
    return [f"{wave['wave']}. {number} moves at once" if number > 1 else f"{wave['wave']}. one move", *lines, *waits]
