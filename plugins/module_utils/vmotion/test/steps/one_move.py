# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: prepare a move, make it, and look it up on the server if its call had no answer; pure."""

from __future__ import annotations

from typing import Any

from ...checks import move_lines
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState
from .job_progress import in_rank_order, rank_list
from .moves_plan import needs_canary
from .server_moves import EARLIER_SECONDS, move_on_server, requested_moves

# A move whose call ended without an answer is looked up and requested again this often.
MOST_LOST = 3
LOOKED_UP = {
    "its end": "the server has completed the move",
    "under way": "the move is in progress: the test follows it",
    "nothing": "the server has no such move: it starts now",
}


def _preparing(state: TrialState) -> str:
    worker = state.left[0]["worker"]
    inside = [pod for pod in in_rank_order(state.warm or {}) if pod[1]["worker"] == worker]
    pods = [f"{rank_list(pod['ranks'])} in pod {name}" for name, pod in inside]
    return ", with ".join([f"prepares the move {move_lines.line(state.left[0])}", *pods])


def _begin(state: TrialState, _controller: Controller) -> ModuleCall:
    worker = state.left[0]["worker"]
    return ModuleCall("vmotion_info", {"cluster": state.cluster, "workers": [worker], "since": state.last_at})


def _begin_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    planned = state.left[0]
    return [("begin", {"move": planned, "place": result["places"][planned["worker"]]})]


def _is_pending(state: TrialState, entry: Entry) -> None:
    state.pending = dict(entry)


BEGIN = Step(
    name="begin",
    title=_preparing,
    due=(
        Due(Phase.CANARY, lambda state: needs_canary(state) and bool(state.left), after=("canary_plan",)),
        Due(Phase.ROUND, lambda state: bool(state.left), after=("preflight",)),
    ),
    action=_begin,
    entries=_begin_entry,
    kinds=(EntryKind("begin", _is_pending),),
)


def _pending(state: TrialState) -> str:
    return move_lines.line((state.pending or {})["move"])


def _move(state: TrialState, controller: Controller) -> ModuleCall:
    settings, planned = state.settings, (state.pending or {})["move"]
    options = {"cluster": state.cluster, "worker": planned["worker"], "target": planned["target"]}
    limits: dict[str, Any] = {
        "move_timeout": settings["move_timeout"],
        "stun_budget": settings["stun_budget"],
        "accept": settings["accept"],
    }
    return ModuleCall("vmotion", {**options, **limits, "records": controller.records}, may_fail=True)


def _move_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return the entry of a move that ended or was refused, or of one whose call ended without an answer."""
    begun = state.pending or {}
    # If a worker is on its target although an earlier call had no answer, that call has moved it.
    may_have_moved = bool(begun.get("lost")) if not result.get("failed") else result.get("begun") is not False
    is_unknown = result.get("move") is None and may_have_moved
    move = move_lines.observed(result, begun["move"], state.ranks)
    if not is_unknown:
        return [("move", {"move": move})]
    if len(begun.get("lost") or []) < MOST_LOST:
        return [("lost", {"said": move["said"]})]
    return [("move", {"move": {**move, "asked": {"at": begun["at"], "place": begun["place"]}}})]


def _has_moved(state: TrialState, entry: Entry) -> None:
    """Keep a move that has ended, or that was refused before it started."""
    is_canary = state.round == 0
    state.moves.append({**entry["move"], "looks": len(state.looks), "canary": is_canary})
    state.pending, state.looked_up, state.left = None, None, state.left[1:]
    state.is_owed = not is_canary
    if is_canary and not entry["move"]["ok"]:
        state.stopped = str(entry["move"].get("said") or "the first worker did not move")


def _move_messages(entry: Entry, _state: TrialState) -> list[str]:
    move = entry["move"]
    return [] if move["ok"] else [str(move.get("said") or "the worker did not move")]


def _is_lost(state: TrialState, entry: Entry) -> None:
    """Have the move looked up: its call ended without an answer."""
    begun = state.pending or {}
    state.pending, state.looked_up = {**begun, "lost": [*begun.get("lost", []), entry["said"]]}, None


MOVE = Step(
    name="move",
    title=lambda state: f"moves {_pending(state)}",
    due=(Due(Phase.MOVE, lambda state: bool(state.pending), after=("look_up",)),),
    action=_move,
    entries=_move_entries,
    kinds=(
        EntryKind("move", _has_moved, _move_messages, is_milestone=True),
        EntryKind("lost", _is_lost, lambda entry, _state: [str(entry["said"])]),
    ),
)


def _needs_look_up(state: TrialState) -> bool:
    """Return whether the outcome of a move is unknown: another controller requested it, or its call had no answer."""
    is_unknown = bool({"controller", "lost"} & set(state.since_last("begin")))
    return bool(state.pending) and is_unknown and not state.looked_up


def _look_up(state: TrialState, _controller: Controller) -> ModuleCall:
    begun = state.pending or {}
    since = begun["at"] - EARLIER_SECONDS
    return ModuleCall("vmotion_info", {"cluster": state.cluster, "workers": [begun["move"]["worker"]], "since": since})


def _look_up_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return whether the server has completed the move, is still making it, or has no such move."""
    begun = state.pending or {}
    candidates = requested_moves(result, begun["move"], begun, state)
    if not candidates:
        return [("look_up", {"found": "nothing"})]
    if candidates[-1]["completed"] is None:
        return [("look_up", {"found": "under way"})]
    return [("look_up", {"found": "its end"}), ("move", {"move": move_on_server(result, candidates[-1], begun, state)})]


def _is_looked_up(state: TrialState, entry: Entry) -> None:
    state.looked_up = dict(entry)


def _forget_look_up(state: TrialState) -> None:
    state.looked_up = None


LOOK_UP = Step(
    name="look_up",
    title=lambda state: f"looks up in vCenter the move {_pending(state)}",
    due=(Due(Phase.MOVE, _needs_look_up),),
    action=_look_up,
    entries=_look_up_entries,
    kinds=(EntryKind("look_up", _is_looked_up, lambda entry, _state: [LOOKED_UP[entry["found"]]]),),
    continued=_forget_look_up,
)
