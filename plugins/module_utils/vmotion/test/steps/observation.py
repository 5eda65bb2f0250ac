# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Step: observe the job for some time, while others move its workers; pure."""

from __future__ import annotations

from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState

# More steps than any job makes in one observation: the call ends with its time.
NO_END = 1 << 40


def _is_due(state: TrialState) -> bool:
    """Return whether the observation lasts: for its duration, and as long as the job runs."""
    if not state.settings.get("observe"):
        return False
    is_in_time = state.last_at < state.began + float(state.settings["duration"])
    return is_in_time and (state.job_now or {}).get("state") == "running"


def _observe(state: TrialState, controller: Controller) -> ModuleCall:
    left = state.began + float(state.settings["duration"]) - state.last_at
    seconds = max(1.0, min(float(state.settings["observe"]["seconds"]), left))
    options = {"records": controller.records, "steps": NO_END, "since": state.last_at, "timeout": seconds}
    return ModuleCall("training_wait", options, may_fail=True)


def _entries(_result: Result, _state: TrialState, _controller: Controller) -> Entries:
    """Return the entry: the call always ends without all its steps."""
    return [("observe", {})]


def _needs_judgement(state: TrialState, _entry: Entry) -> None:
    state.is_reviewed = False


OBSERVE = Step(
    name="observe",
    title="",
    due=(Due(Phase.ROUND, _is_due),),
    action=_observe,
    entries=_entries,
    kinds=(EntryKind("observe", _needs_judgement),),
)
