# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: plan the moves of a round, and the move of a worker without a rank that goes first; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...checks import move_lines
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step, failed
from ..trial_state import Entry, HostChange, Settings, TrialState

KEPT = ("moves", "rdma", "profile", "slots")


def plan_call(settings: Settings, hosts: Sequence[str] = ()) -> ModuleCall:
    """Return the call that plans all moves, or those that empty these hosts; one without a journal uses it too."""
    options: dict[str, Any] = {"cluster": settings["cluster"], "one_per_host": settings["one_per_host"]}
    if settings.get("observe"):
        return ModuleCall("vmotion_plan", {**options, "empty_hosts": []})
    if settings.get("window"):
        return ModuleCall("vmotion_plan", {**options, **_emptied(settings["window"], hosts)})
    options["return_home"] = settings["return_home"]
    if settings.get("max_moves", 1) > 1:
        options.update(max_moves=settings["max_moves"], stun_budget=settings["stun_budget"])
    return ModuleCall("vmotion_plan", {**options, **({"workers": settings["workers"]} if settings["workers"] else {})})


def _emptied(window: Mapping[str, Any], hosts: Sequence[str]) -> dict[str, Any]:
    """Return the options for a window; what vCenter cannot do is refused before the first move."""
    mode = {"non_disruptive": True} if window.get("non_disruptive") else {}
    return {"empty_hosts": list(hosts or window["hosts"]), **mode}


def _plan(state: TrialState, _controller: Controller) -> ModuleCall:
    return plan_call(state.settings, state.waiting_hosts)


def not_applicable(cluster: str, planned: Mapping[str, Any]) -> str:
    """Return why a plan leaves nothing to test; empty if there are moves, or hosts to change."""
    if "stages" in planned:
        return ""
    tied = planned["not_applicable"]
    if planned["moves"] and not tied:
        return ""
    why = f"these workers are tied to their hosts by devices: {', '.join(tied)}" if tied else "no worker runs"
    return (
        f"Cluster {cluster}: a vMotion test is not applicable: {why}; name those that can move by vmotion_test_workers."
    )


def _plan_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    refusal = not_applicable(state.cluster, result)
    if refusal:
        return failed("plan", refusal)
    more = {key: result[key] for key in ("stages", "waves") if key in result}
    kept = {**{key: result[key] for key in KEPT}, **more, "clock_offset_s": result.get("clock_offset_s")}
    return [("plan", {**kept, "places": result["at"]})]


def _start_round(state: TrialState, entry: Entry) -> None:
    """Keep the host of each worker from the first plan; each later plan starts a round."""
    state.rdma = dict(entry["rdma"])
    state.keep_offset(entry)
    if not state.began:
        state.at, state.began = dict(entry["places"]), float(entry["at"])
        return
    state.round += 1
    state.left, state.managers = list(entry["moves"]), None
    if entry.get("stages"):
        stage = entry["stages"][0]
        state.left = list(stage["moves"])
        state.host = HostChange(str(stage["host"]))


def _needs_round(state: TrialState) -> bool:
    """Return whether a round is to follow: for a waiting host, by the number of rounds, or by the time."""
    if state.settings.get("observe"):
        return False
    if state.settings.get("window"):
        return not state.left and state.host is None and bool(state.waiting_hosts)
    is_in_time = state.last_at < state.began + float(state.settings["duration"])
    return not state.left and (state.round < int(state.settings["rounds"]) or is_in_time)


def plan_lines(planned: Mapping[str, Any]) -> list[str]:
    """Return a line for each move, after a line for each wave or for each host that leaves service."""
    if "waves" in planned:
        return [line for wave in planned["waves"] for line in _wave_lines(wave, planned["moves"])]
    if "stages" not in planned:
        return [move_lines.line(move) for move in planned["moves"]]
    return [
        line
        for number, stage in enumerate(planned["stages"], start=1)
        for line in (
            f"{number}. {stage['host']} is changed" + ("" if stage["moves"] else ", no worker runs on it"),
            *(f"   before: {move_lines.line(move)}" for move in stage["moves"]),
        )
    ]


def _wave_lines(wave: Mapping[str, Any], moves: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a wave: its number, its moves, and why it has no more of them."""
    number = int(wave["moves"])
    lines = [f"   {move_lines.line(move)}" for move in moves if move["wave"] == wave["wave"]]
    waits = [f"   {wave['waits']} waits: {wave['reason']}"] if wave.get("reason") else []
    return [f"{wave['wave']}. {number} moves at once" if number > 1 else f"{wave['wave']}. one move", *lines, *waits]


PLAN = Step(
    name="plan",
    title="plans the moves",
    due=(
        Due(Phase.OPENING, lambda state: not state.began, after=("cluster",)),
        Due(Phase.ROUND, _needs_round),
    ),
    action=_plan,
    entries=_plan_entry,
    kinds=(
        EntryKind(
            "plan",
            _start_round,
            lambda entry, _state: plan_lines(entry),
            is_milestone=True,
        ),
    ),
)


def needs_canary(state: TrialState) -> bool:
    """Return whether the move of a worker without a rank has still to be made."""
    is_named = state.canary is not None and bool(state.canary["worker"])
    return may_need_canary(state) and is_named and not any(move.get("canary") for move in state.moves)


def may_need_canary(state: TrialState) -> bool:
    """Return whether a worker without a rank may go first: before the first round, if the settings ask for it."""
    return not state.round and bool(state.settings["canary"])


def _ever_moved(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("vmotion_info", {"cluster": state.cluster, "since": 0.0})


def _canary_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Name the worker that goes first: one on which no rank runs, if nothing has ever moved in this cluster.

    If the host name of a rank does not match a worker, the rank may run on any of them, and none counts as idle.
    """
    ever, setting = sum(bool(move["ok"]) for move in result["moves"]), state.settings["canary"]
    free = sorted(set(state.at) - set(state.ranks)) if set(state.ranks) <= set(state.at) else []
    idle = [setting] if setting != "auto" else free
    return [("canary", {"ever": ever, "worker": idle[0] if idle and not ever else ""})]


def _keep_canary(state: TrialState, entry: Entry) -> None:
    state.canary = dict(entry)


def _canary_messages(entry: Entry, state: TrialState) -> list[str]:
    if entry["ever"] or entry["worker"]:
        return []
    return [f"no worker of cluster {state.cluster} has ever moved, and a rank runs on each: one of these moves first"]


CANARY = Step(
    name="canary",
    title="asks vCenter whether a worker has ever moved",
    due=(Due(Phase.CANARY, lambda state: may_need_canary(state) and state.canary is None),),
    action=_ever_moved,
    entries=_canary_entry,
    kinds=(EntryKind("canary", _keep_canary, _canary_messages),),
)


def _plan_canary(state: TrialState, _controller: Controller) -> ModuleCall:
    options = {"cluster": state.cluster, "one_per_host": state.settings["one_per_host"]}
    return ModuleCall("vmotion_plan", {**options, "workers": [(state.canary or {})["worker"]]})


def _canary_plan_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    refusal = not_applicable(state.cluster, result)
    return failed("canary_plan", refusal) if refusal else [("canary_plan", {"move": result["moves"][0]})]


def _plan_of_one(state: TrialState, entry: Entry) -> None:
    state.left = [dict(entry["move"])]


CANARY_PLAN = Step(
    name="canary_plan",
    title="plans the move of a worker without a rank, which goes first",
    due=(Due(Phase.CANARY, lambda state: needs_canary(state) and not state.left, after=("canary",)),),
    action=_plan_canary,
    entries=_canary_plan_entry,
    kinds=(EntryKind("canary_plan", _plan_of_one),),
)
