# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps of an observation: watch the job while others move its workers, and drop the records that were judged; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...checks import move_lines
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, RollRecords, Step
from ..trial_state import Entry, TrialState

# More steps than any job makes in one observation: the call ends with its time.
NO_END = 1 << 40
# The records of a job for this long are enough to judge it; older ones are removed once they were judged.
KEEP_SECONDS = 600.0


def _is_due(state: TrialState) -> bool:
    """Return whether the observation lasts: for its duration, as long as the job runs and no request ends it."""
    if not state.settings.get("observe") or state.is_asked_to_end:
        return False
    is_in_time = state.last_at < state.began + float(state.settings["duration"])
    return is_in_time and (state.job_now or {}).get("state") == "running"


def _observe(state: TrialState, controller: Controller) -> ModuleCall:
    left = state.began + float(state.settings["duration"]) - state.last_at
    seconds = max(1.0, min(float(state.settings["observe"]["seconds"]), left))
    options = {"records": controller.records, "steps": NO_END, "since": state.last_at, "timeout": seconds}
    return ModuleCall("training_wait", {**options, "ended_by": controller.request}, may_fail=True)


def _entries(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    """Return the entry: the call ends with its time, or on request."""
    return [("observe", {"asked": bool(result.get("asked"))})]


def _needs_judgement(state: TrialState, entry: Entry) -> None:
    state.is_reviewed = False
    state.is_asked_to_end = bool(entry.get("asked"))


OBSERVE = Step(
    name="observe",
    title="",
    due=(Due(Phase.ROUND, _is_due, after=("roll",)),),
    action=_observe,
    entries=_entries,
    kinds=(
        EntryKind(
            "observe",
            _needs_judgement,
            lambda entry, _state: ["ends the observation, as requested"] if entry.get("asked") else [],
        ),
    ),
)


def _has_judged_events(state: TrialState) -> bool:
    """Return whether the records of the present window can go: it is long enough, and every move in it is judged."""
    if not _is_due(state) or state.judged is None:
        return False
    keep = float(state.settings["observe"].get("keep") or KEEP_SECONDS)
    is_long = state.last_at >= (state.rolled_at or state.began) + keep
    return is_long and all(_has_settled(move, state) for move in state.others)


def _has_settled(move: Mapping[str, Any], state: TrialState) -> bool:
    """Return whether a move, and the time in which the job must continue after it, are over."""
    completed = move.get("completed")
    return completed is not None and completed + state.resume_deadline_s < state.heard_until


def _has_events(state: TrialState) -> bool:
    return bool(state.others or state.power)


def _save(_state: TrialState, controller: Controller) -> ModuleCall:
    return ModuleCall("continuity_verdict", {"test": controller.folder})


def _save_entries(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("save", {"files": [str(path).rpartition("/")[2] for path in result["files"]]})]


def _is_saved(state: TrialState, entry: Entry) -> None:
    state.saved = list(entry["files"])


SAVE = Step(
    name="save",
    title="writes the verdict and the page of these events",
    due=(
        Due(Phase.ROUND, lambda state: _has_judged_events(state) and _has_events(state) and "save" not in state.lately),
    ),
    action=_save,
    entries=_save_entries,
    kinds=(EntryKind("save", _is_saved),),
)


def _roll(_state: TrialState, _controller: Controller) -> RollRecords:
    return RollRecords()


def _roll_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Return the verdict on the window, which later verdicts contain; without a watch, nothing is removed."""
    judged = state.judged or {}
    moves = [move_lines.without_events(move) for move in state.others]
    rows = list(judged.get("moves") or []) if moves else []
    content = {"moves": moves, "rows": rows, "power": [*(state.power or [])], "files": list(state.saved)}
    return [("roll", {"rolled": bool(result.get("rolled")), "until": state.heard_until, **content})]


def _begin_window(state: TrialState, entry: Entry) -> None:
    """Keep the verdict on the events so far. The records of the present window become the earlier ones."""
    state.rolled_at = float(entry["at"])
    if not entry["rolled"]:
        return
    judged = state.judged or {}
    if entry["moves"] or entry["power"] or judged.get("verdict") != "continuous":
        kept = {key: judged.get(key) for key in ("verdict", "unproven", "notes")}
        state.earlier.append({**entry, **kept, "moves": list(entry["moves"])})
    state.windows += 1
    state.clock_offsets = state.clock_offsets[-1:]
    state.at = move_lines.hosts_after(state.at, entry["moves"])
    state.told_until, state.others, state.power, state.saved = float(entry["until"]), [], [], []


ROLL = Step(
    name="roll",
    title="",
    due=(Due(Phase.ROUND, lambda state: _has_judged_events(state) and "roll" not in state.lately, after=("save",)),),
    action=_roll,
    entries=_roll_entries,
    kinds=(EntryKind("roll", _begin_window),),
)
