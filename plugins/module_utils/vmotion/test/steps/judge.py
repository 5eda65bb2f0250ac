# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Step: judge the job; pure."""

from __future__ import annotations

from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState

KEPT = ("verdict", "moved", "breaches", "unproven", "notes", "longest_gap_s")


def _judge(state: TrialState, controller: Controller) -> ModuleCall:
    folder, name = controller.folder, f"vmotion_test {state.cluster}"
    return ModuleCall("continuity_verdict", {"test": folder, "folder": folder, "name": name})


def _judge_entry(result: Result, state: TrialState, _controller: Controller) -> Entries:
    # An observation needs the silence of each move too.
    kept = (*KEPT, "moves") if state.settings.get("observe") else KEPT
    return [("judge", {"verdict": {key: result[key] for key in kept if key in result}})]


def _keep_verdict(state: TrialState, entry: Entry) -> None:
    """Keep the verdict; the first breach, or the first move that failed, stops the test."""
    state.judged = dict(entry["verdict"])
    if not state.is_over:
        breach = next((str(found["detail"]) for found in state.judged["breaches"]), "")
        bad = [move for move in state.last_wave if not move["ok"]] if state.is_owed else []
        state.stopped = state.stopped or breach or next((str(move["said"]) for move in bad if move.get("said")), "")
    state.is_owed, state.is_reviewed = False, True


def _needs_review(state: TrialState) -> None:
    """Have the job judged again before anything moves: it may have changed while no controller was at work."""
    state.is_reviewed = state.warm is None


JUDGE = Step(
    name="judge",
    title="judges the job",
    due=(
        Due(Phase.JUDGEMENT, lambda _state: True, after=("others",)),
        Due(Phase.ENDING, lambda state: state.warm is not None, after=("others",)),
    ),
    action=_judge,
    entries=_judge_entry,
    kinds=(EntryKind("judge", _keep_verdict, is_milestone=True),),
    # Before the end, the same lines would be shown after each move.
    result_lines=lambda result, state: list(result["lines"]) if state.is_over else [],
    continued=_needs_review,
)
