# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The state of a vMotion test from its journal, and its next step; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from ...errors import Failed
from .step import EntryKind, Phase, Step, no_effect
from .step_registry import REGISTRY
from .trial_state import REQUIRED, Entry, Settings, TrialState


def state_of(journal: Iterable[Entry]) -> TrialState:
    """Return the state of the test after all entries of its journal; raise Failed if one of them is incomplete."""
    state = TrialState()
    for number, entry in enumerate(journal, start=1):
        kind = kind_of(str(entry["entry"]))
        try:
            _apply(kind, state, entry)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            reason = f"entry {number} ({kind.name}) is incomplete ({error!r}): the file was changed or damaged"
            raise Failed("The journal of the test", "read it", reason, "restore the file from a copy") from error
    return state


def _apply(kind: EntryKind, state: TrialState, entry: Entry) -> None:
    if kind.name != "open" and not dict(state.settings):
        raise ValueError("there is no entry with the settings of the test before it")
    # After the entry "over" there are no milestones: no step of the ending is done twice.
    is_milestone = kind.is_milestone and not state.is_over
    kind.effect(state, entry)
    state.lately = [] if is_milestone else [*state.lately, kind.name]
    state.last_at = float(entry["at"])


def kind_of(name: str) -> EntryKind:
    """Return a kind of entries; one without effect if a later version of the collection wrote it."""
    return _FRAME.get(name) or REGISTRY.kinds.get(name) or EntryKind(name, no_effect)


def next_step(state: TrialState) -> Step | None:
    """Return the first step that is due, or None if none is left."""
    if state.end:
        return None
    phases = (phase for phase in Phase if _OPEN[phase](state))
    return next((step for phase in phases for step in REGISTRY.of_phase[phase] if _is_due(step, phase, state)), None)


def _is_due(step: Step, phase: Phase, state: TrialState) -> bool:
    due = step.due_in(phase)
    is_done = phase is Phase.ENDING and step.name in {*state.lately, *state.tried}
    return due is not None and not is_done and due.when(state)


def _is_running(state: TrialState) -> bool:
    return not state.is_over


def _needs_judgement(state: TrialState) -> bool:
    return not state.is_over and (state.is_owed or not state.is_reviewed)


def _may_go_on(state: TrialState) -> bool:
    return not state.is_over and (not state.stopped or (state.settings["go_on"] and bool(state.round)))


def _has_empty_host(state: TrialState) -> bool:
    """Return whether a host is to be changed: one that is out of service is returned also after a breach."""
    if state.is_over or state.host is None or state.left:
        return False
    return bool(state.host.out_at) or not state.stopped


_OPEN: dict[Phase, Callable[[TrialState], bool]] = {
    **dict.fromkeys(Phase, _is_running),
    Phase.LOCK: lambda _state: True,
    Phase.JUDGEMENT: _needs_judgement,
    Phase.HOST: _has_empty_host,
    Phase.ROUND: _may_go_on,
    Phase.ENDING: lambda state: state.is_over,
}


def _opened(state: TrialState, entry: Entry) -> None:
    settings = dict(entry["settings"])
    missing = sorted(REQUIRED - set(settings))
    if missing:
        raise ValueError(f"it has no setting {', '.join(missing)}")
    state.settings = cast(Settings, settings)


def _continued(state: TrialState, entry: Entry) -> None:
    """Have another controller repeat what may have changed since the controller before it ended."""
    if "window" in entry:
        state.settings["window"] = {**state.settings["window"], **entry["window"]}
    state.lately = [kind for kind in state.lately if state.is_over or not _is_repeated(kind)]
    # A step that failed is tried again, unless the failure ended the test.
    state.failures = [failure for failure in state.failures if state.is_over and not failure["in_the_end"]]
    state.tried, state.kept = set(), set()
    for step in REGISTRY.steps:
        step.continued(state)


def _is_repeated(kind: str) -> bool:
    step = REGISTRY.by_name.get(kind)
    return step is not None and step.is_repeated


def _failed(state: TrialState, entry: Entry) -> None:
    name = str(entry["step"])
    state.failures.append({"step": name, "said": entry["said"], "in_the_end": state.is_over})
    state.tried.add(name)
    step = REGISTRY.by_name.get(name)
    if step is not None and step.gives_back:
        state.kept.add(name)


_FRAME: dict[str, EntryKind] = {
    kind.name: kind
    for kind in (
        EntryKind("open", _opened),
        EntryKind("controller", _continued),
        EntryKind("failed", _failed, lambda entry, _state: [str(entry["said"])]),
    )
}
