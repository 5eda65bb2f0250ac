# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Step: read the moves and power events of others, and find the moves of the test among those of the server; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...checks import move_events, move_lines
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState

# The server may date the start of a move a little before the controller dates its request.
EARLIER_SECONDS = 5.0

Move = Mapping[str, Any]


def requested_moves(result: Result, planned: Move, asked: Mapping[str, Any], state: TrialState) -> list[Any]:
    """Return the moves on the server that can be the one that this test requested."""
    known, since = {move.get("chain") for move in state.moves}, asked["at"] - EARLIER_SECONDS
    return [
        move
        for move in result["moves"]
        if (move["worker"], move["target"]) == (planned["worker"], planned["target"])
        and move["chain"] not in known
        and move["started"] >= since
    ]


def move_on_server(result: Result, move: Move, asked: Mapping[str, Any], state: TrialState) -> dict[str, Any]:
    """Return a move from the server, with the state of its worker before the request and after the end."""
    worker = move["worker"]
    before, after = asked["place"], result["places"][worker]
    was_switched = any(event["worker"] == worker for event in result["power"])
    vsphere = {
        **move["vsphere"],
        "power_cycled": was_switched or move_events.has_booted(before, after),
        "host": {"before": before["host"], "after": after["host"]},
        "gpus": {"before": before["gpus"], "after": after["gpus"]},
        "encryption": before["encryption"],
    }
    is_done = bool(move["ok"]) and after["host"] == move["target"]
    ranks = list(state.ranks.get(worker, []))
    return {**move, "ok": is_done, "vsphere": vsphere, "attached": True, "ranks": ranks}


def _others(state: TrialState, _controller: Controller) -> ModuleCall:
    since = state.told_until - EARLIER_SECONDS if state.told_until else state.began
    return ModuleCall("vmotion_info", {"cluster": state.cluster, "since": since})


def _others_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return the moves of others, and as moves of the test those that it requested without receiving an answer."""
    entries: Entries = []
    own = list[Any]()
    for place, planned, asked in _unanswered(state):
        candidates = requested_moves(result, planned, asked, state)
        own += candidates
        if candidates and candidates[-1]["completed"] is not None:
            move = move_on_server(result, candidates[-1], asked, state)
            entries.append(("move", {"move": move}) if place is None else ("found", {"place": place, "move": move}))
    earlier = [move for window in state.earlier for move in window["moves"]]
    moves = move_events.moves_of_others(result["moves"], [*state.moves, *own, *earlier], state.ranks)
    power = [event for event in result["power"] if event["at"] > state.told_until]
    return [*entries, ("others", {"moves": moves, "power": power, "clock_offset_s": result.get("clock_offset_s")})]


def _unanswered(state: TrialState) -> Iterator[tuple[int | None, Move, Mapping[str, Any]]]:
    """Yield the moves without an answer: the place in the list of moves, the planned move, and the request."""
    for place, move in enumerate(state.moves):
        if move.get("asked"):
            yield place, move, move["asked"]
    for begun in state.pending:
        yield None, begun["move"], begun


def _keep_others(state: TrialState, entry: Entry) -> None:
    state.others, state.power = list(entry["moves"]), list(entry["power"])
    state.keep_offset(entry)
    if "unwatch" not in state.lately:
        state.heard_until = float(entry["at"])


def _keep_found(state: TrialState, entry: Entry) -> None:
    """Replace a move without an answer by the one that the server has."""
    before = state.moves[entry["place"]]
    kept: dict[str, Any] = {key: before[key] for key in ("looks", "canary", "wave") if key in before}
    state.moves[entry["place"]] = {**entry["move"], **kept}


def _messages(entry: Entry, state: TrialState) -> list[str]:
    """Return a line for each move and each power event of others that is new."""
    known = {move["chain"] for move in state.others}
    new = [move for move in entry["moves"] if move["chain"] not in known]
    power = [event for event in entry["power"] if not any(_is_same(event, other) for other in state.power or [])]
    return [
        *(f"{move_lines.line(move)}, moved by {move.get('by') or 'an unknown user'}" for move in new),
        *(f"{event['worker']}: {event['what']}, by {event.get('by') or 'an unknown user'}" for event in power),
    ]


def _is_same(event: Move, other: Move) -> bool:
    """Return whether two readings are the same power event: the times of one differ by milliseconds."""
    is_near = abs(float(event["at"]) - float(other["at"])) < 1.0
    return is_near and (event["worker"], event["what"]) == (other["worker"], other["what"])


OTHERS = Step(
    name="others",
    title="asks vCenter for moves and power events that others caused",
    due=(
        Due(Phase.JUDGEMENT, lambda state: "others" not in state.lately, after=("job",)),
        Due(Phase.ENDING, lambda state: state.warm is not None, after=("job",)),
    ),
    action=_others,
    entries=_others_entries,
    kinds=(EntryKind("others", _keep_others, _messages), EntryKind("found", _keep_found)),
    is_repeated=True,
)
