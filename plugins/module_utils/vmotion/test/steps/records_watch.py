# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: start and end the watch of the step records; pure."""

from __future__ import annotations

from ..step import BACKGROUND, Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step, StopWatch
from ..trial_state import Entry, TrialState
from .transport_reading import nodes_of

WATCH_SECONDS = 604800
# Some hundred records of a rank.
TAIL_BYTES = 1 << 16


def _watch(state: TrialState, controller: Controller) -> ModuleCall:
    files = {"records": controller.records, "stop": f"{controller.folder}/stop"}
    options = {**nodes_of(state), **files, "timeout": WATCH_SECONDS}
    if state.settings.get("observe"):
        # A job that has run for a week has more records than an observation needs.
        options.update(tail=TAIL_BYTES, roll=f"{controller.folder}/roll")
    return ModuleCall("training_watch", options, BACKGROUND)


def _watch_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    """Report whether this controller started the watch: one that an earlier controller started may still run."""
    return [("watch", {"begun": bool(result.get("begun", True))})]


def _is_watched(state: TrialState, _entry: Entry) -> None:
    state.is_watched = True


def _may_have_ended(state: TrialState) -> None:
    state.is_watched = False


def _needs_watch_at_end(state: TrialState) -> bool:
    return state.may_outlast and not state.is_watched and "unwatch" not in {*state.lately, *state.tried}


WATCH = Step(
    name="watch",
    title="watches the step records of the job",
    due=(
        Due(Phase.OPENING, lambda state: not state.is_watched, after=("plan",)),
        Due(Phase.ENDING, _needs_watch_at_end),
    ),
    action=_watch,
    entries=_watch_entry,
    kinds=(EntryKind("watch", _is_watched),),
    continued=_may_have_ended,
)


def _unwatch(_state: TrialState, _controller: Controller) -> StopWatch:
    return StopWatch()


def _is_unwatched(state: TrialState, entry: Entry) -> None:
    state.heard_until = float(entry["at"])


UNWATCH = Step(
    name="unwatch",
    title="ends the watch of the step records",
    due=(Due(Phase.ENDING, lambda _state: True, after=("checksums", "restore")),),
    action=_unwatch,
    kinds=(EntryKind("unwatch", _is_unwatched),),
    gives_back=True,
)
