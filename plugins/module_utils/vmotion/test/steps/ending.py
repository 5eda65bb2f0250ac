# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: begin the end of the test, write the evidence, end; pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...checks import move_lines
from ..judging import transports
from ..outcome import outcome
from ..step import Controller, Due, Entries, EntryKind, Phase, Result, Step, WriteFiles
from ..trial_state import Entry, TrialState


def _is_over(state: TrialState, _entry: Entry) -> None:
    state.is_over, state.tried, state.kept = True, set(), set()
    state.may_outlast = state.judged is not None and not state.judged["breaches"]


OVER = Step(
    name="over",
    title="ends the test",
    due=(Due(Phase.FAILURE, lambda state: bool(state.failures)), Due(Phase.CLOSING, lambda _state: True)),
    kinds=(EntryKind("over", _is_over, is_milestone=True),),
)


def _evidence(state: TrialState, controller: Controller) -> WriteFiles:
    return WriteFiles(
        {
            "moves": [move_lines.without_events(move) for move in state.every_move],
            "events": [event for move in state.every_move for event in move.get("events") or []],
            "tasks": [move["task"] for move in state.every_move if "task" in move],
            "transport": transports(state),
            **({"window": [asdict(change) for change in state.host_changes]} if state.settings.get("window") else {}),
            "versions": _versions(state, controller),
        }
    )


def _versions(state: TrialState, controller: Controller) -> dict[str, Any]:
    """Return the versions of Ansible, this collection, vCenter, the hosts and the job."""
    vcenter = (state.cluster_after or {}).get("vcenter")
    return {**controller.versions, "vcenter": vcenter, "hosts": state.hosts, "job": state.job}


KEEP = Step(
    name="keep",
    title="writes the evidence",
    due=(Due(Phase.ENDING, lambda state: state.judged is not None, after=("hosts",)),),
    action=_evidence,
    kinds=(EntryKind("keep"),),
)


def _end_entry(_result: Result, state: TrialState, controller: Controller) -> Entries:
    reason = outcome(state, controller.folder)
    return [("end", {"passed": not reason, "said": reason})]


def _has_ended(state: TrialState, entry: Entry) -> None:
    state.end = dict(entry)


END = Step(
    name="end",
    title="",
    due=(Due(Phase.ENDING, lambda state: not state.kept, after=("keep",)),),
    entries=_end_entry,
    kinds=(EntryKind("end", _has_ended),),
)
