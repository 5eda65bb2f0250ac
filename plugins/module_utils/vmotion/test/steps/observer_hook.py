# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Step: run a command of the user if a move of others stalled the job, or if the job broke; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..step import Controller, Due, Entries, EntryKind, Phase, Result, RunCommand, Step
from ..trial_state import Entry, TrialState

STALLED, BROKEN = "stalled", "broken"
STALL_SECONDS, HOOK_SECONDS = 10.0, 60.0
OF_MOVE = ("worker", "source", "target", "by", "started", "completed", "ok")


def events(state: TrialState) -> list[dict[str, Any]]:
    """Return the events since the last call of the command, each with a key."""
    return [event for event in _events(state) if event["key"] not in state.hooked]


def _events(state: TrialState) -> Iterator[dict[str, Any]]:
    judged = state.judged or {}
    least = (state.settings.get("observe") or {}).get("stall_seconds") or STALL_SECONDS
    for move, row in zip(state.every_move, judged.get("moves") or []):
        if (row.get("gap_s") or 0.0) >= float(least):
            yield _stall(move, row)
    for breach in judged.get("breaches") or []:
        detail = str(breach["detail"])
        yield {"kind": BROKEN, "key": f"{BROKEN} {breach.get('kind')} {detail}", "detail": detail}


def _stall(move: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    where = {key: move.get(key) for key in OF_MOVE}
    detail = f"{move['worker']} moved from {move.get('source')} to {move.get('target')}"
    sentence = f"{detail}, and the job stood still for {row['gap_s']:.1f} s"
    # The times of a move differ by milliseconds each time they are read.
    key = f"{STALLED} {move.get('chain')} {move['worker']}"
    return {"kind": STALLED, "key": key, "detail": sentence, "move": where, "gap_s": row["gap_s"]}


def _is_due(state: TrialState) -> bool:
    return bool((state.settings.get("observe") or {}).get("hook")) and state.is_reviewed and bool(events(state))


def _run(state: TrialState, controller: Controller) -> RunCommand:
    content = {"cluster": state.cluster, "folder": controller.folder, "verdict": (state.judged or {}).get("verdict")}
    text = json.dumps({**content, "events": events(state)})
    return RunCommand(tuple(map(str, state.settings["observe"]["hook"])), f"{text}\n", HOOK_SECONDS)


def _run_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return the entry: a command that fails does not end the observation."""
    keys = [event["key"] for event in events(state)]
    return [("hook", {"keys": keys, "rc": result.get("rc"), "said": str(result.get("msg") or "")})]


def _is_run(state: TrialState, entry: Entry) -> None:
    state.hooked |= set(entry["keys"])


def _messages(entry: Entry, _state: TrialState) -> list[str]:
    return [str(entry["said"])] if entry["said"] else []


HOOK = Step(
    name="hook",
    title="runs the command of observe_hook",
    due=(
        Due(Phase.ROUND, _is_due),
        Due(Phase.CLOSING, _is_due),
        Due(Phase.ENDING, _is_due, after=("judge",)),
    ),
    action=_run,
    entries=_run_entries,
    kinds=(EntryKind("hook", _is_run, _messages),),
)
