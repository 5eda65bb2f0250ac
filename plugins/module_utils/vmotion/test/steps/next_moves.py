# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: prepare the next moves, make them at once, and look them up on the server if their call had no answer; pure.

These are the moves of one wave of the plan; without ``max_moves``, a single move.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    moves = state.next_wave
    workers = {move["worker"] for move in moves}
    inside = [pod for pod in in_rank_order(state.warm or {}) if pod[1]["worker"] in workers]
    pods = [f"{rank_list(pod['ranks'])} in pod {name}" for name, pod in inside]
    return ", with ".join([f"prepares {_named(moves)}", *pods])


def _named(moves: list[dict[str, Any]]) -> str:
    lines = " and ".join(move_lines.line(move) for move in moves)
    return f"the move {lines}" if len(moves) == 1 else f"{len(moves)} moves at once, {lines}"


def _begin(state: TrialState, _controller: Controller) -> ModuleCall:
    workers = [move["worker"] for move in state.next_wave]
    return ModuleCall("vmotion_info", {"cluster": state.cluster, "workers": workers, "since": state.last_at})


def _begin_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    return [("begin", {"move": move, "place": result["places"][move["worker"]]}) for move in state.next_wave]


def _is_pending(state: TrialState, entry: Entry) -> None:
    state.waves += 0 if state.pending else 1
    state.pending.append(dict(entry))


BEGIN = Step(
    name="begin",
    title=_preparing,
    due=(
        Due(Phase.CANARY, lambda state: needs_canary(state) and bool(state.left), after=("canary_plan",)),
        Due(Phase.ROUND, lambda state: bool(state.left), after=("preflight", "stop_rules")),
    ),
    action=_begin,
    entries=_begin_entry,
    kinds=(EntryKind("begin", _is_pending),),
)


def _pending(state: TrialState) -> str:
    return " and ".join(move_lines.line(begun["move"]) for begun in state.pending)


def _move(state: TrialState, controller: Controller) -> ModuleCall:
    settings = state.settings
    moves = [{key: begun["move"][key] for key in ("worker", "target")} for begun in state.pending]
    limits: dict[str, Any] = {
        "cluster": state.cluster,
        "move_timeout": settings["move_timeout"],
        "stun_budget": settings["stun_budget"],
        "accept": settings["accept"],
        "records": controller.records,
    }
    return ModuleCall("vmotion", {**limits, **(moves[0] if len(moves) == 1 else {"moves": moves})}, may_fail=True)


def _move_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return an entry for each move; a call that could not even begin has no result of each."""
    rows = {row["worker"]: row for row in result.get("moved") or []}
    return [_move_entry(rows.get(begun["move"]["worker"], result), begun, state) for begun in state.pending]


def _move_entry(result: Result, begun: Mapping[str, Any], state: TrialState) -> tuple[str, dict[str, Any]]:
    """Return the entry of a move that ended or was refused, or of one whose call ended without an answer."""
    # If a worker is on its target although an earlier call had no answer, that call has moved it.
    may_have_moved = bool(begun.get("lost")) if not result.get("failed") else result.get("begun") is not False
    is_unknown = result.get("move") is None and may_have_moved
    move = move_lines.observed(result, begun["move"], state.ranks)
    if not is_unknown:
        return "move", {"move": move}
    if len(begun.get("lost") or []) < MOST_LOST:
        return "lost", {"said": move["said"], "worker": move["worker"]}
    return "move", {"move": {**move, "asked": {"at": begun["at"], "place": begun["place"]}}}


def _begun_of(state: TrialState, entry: Entry) -> dict[str, Any]:
    """Return the started move that an entry is about; an entry of an earlier release does not name its worker."""
    return next((one for one in state.pending if one["move"]["worker"] == entry.get("worker")), state.pending[0])


def _has_moved(state: TrialState, entry: Entry) -> None:
    """Keep a move that has ended, or that was refused before it started."""
    move, is_canary = dict(entry["move"]), state.round == 0
    begun = next((one for one in state.pending if one["move"]["worker"] == move.get("worker")), None)
    move.pop("wave", None)
    if begun is not None and "wave" in begun["move"]:
        move["wave"] = state.waves
    state.moves.append({**move, "looks": len(state.looks), "canary": is_canary})
    state.pending = [one for one in state.pending if one is not begun]
    state.left = _without(state.left, str(move.get("worker")))
    state.is_owed = not is_canary
    if is_canary and not move["ok"]:
        state.stopped = str(move.get("said") or "the first worker did not move")


def _without(left: list[dict[str, Any]], worker: str) -> list[dict[str, Any]]:
    """Return the moves that are left after the next one of a worker."""
    index = next((number for number, move in enumerate(left) if move["worker"] == worker), 0)
    return [*left[:index], *left[index + 1 :]]


def _move_messages(entry: Entry, _state: TrialState) -> list[str]:
    move = entry["move"]
    return [] if move["ok"] else [str(move.get("said") or "the worker did not move")]


def _is_lost(state: TrialState, entry: Entry) -> None:
    """Have the move looked up: its call ended without an answer."""
    begun = _begun_of(state, entry)
    begun.update(lost=[*begun.get("lost", []), entry["said"]], found="", is_unknown=True)


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


def _unknown(state: TrialState) -> list[dict[str, Any]]:
    """Return the moves whose outcome is unknown: another controller requested them, or their call had no answer."""
    return [begun for begun in state.pending if begun.get("is_unknown") and not begun.get("found")]


def _look_up(state: TrialState, _controller: Controller) -> ModuleCall:
    unknown = _unknown(state)
    workers, since = [begun["move"]["worker"] for begun in unknown], min(begun["at"] for begun in unknown)
    return ModuleCall("vmotion_info", {"cluster": state.cluster, "workers": workers, "since": since - EARLIER_SECONDS})


def _look_up_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return for each move whether the server has completed it, is still making it, or has no such move."""
    found: Entries = []
    moves: Entries = []
    for begun in _unknown(state):
        candidates = requested_moves(result, begun["move"], begun, state)
        is_over = bool(candidates) and candidates[-1]["completed"] is not None
        what = "its end" if is_over else "under way" if candidates else "nothing"
        found.append(("look_up", {"found": what, "worker": begun["move"]["worker"]}))
        if is_over:
            moves.append(("move", {"move": move_on_server(result, candidates[-1], begun, state)}))
    return [*found, *moves]


def _is_looked_up(state: TrialState, entry: Entry) -> None:
    _begun_of(state, entry)["found"] = entry["found"]


def _look_up_messages(entry: Entry, state: TrialState) -> list[str]:
    return [f"{entry['worker']}: {LOOKED_UP[entry['found']]}" if len(state.pending) > 1 else LOOKED_UP[entry["found"]]]


def _forget_look_up(state: TrialState) -> None:
    for begun in state.pending:
        begun.update(found="", is_unknown=True)


LOOK_UP = Step(
    name="look_up",
    title=lambda state: f"looks up in vCenter the move {_pending(state)}",
    due=(Due(Phase.MOVE, lambda state: bool(_unknown(state))),),
    action=_look_up,
    entries=_look_up_entries,
    kinds=(EntryKind("look_up", _is_looked_up, _look_up_messages),),
    continued=_forget_look_up,
)
