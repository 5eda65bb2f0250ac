# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The result of a vMotion test in words; pure."""

from __future__ import annotations

from ..checks import move_lines
from .trial_state import TrialState


def outcome(state: TrialState, folder: str) -> str:
    """Return why the test failed, in one text; empty if it passed."""
    reasons = [str(failure["said"]) for failure in state.failures]
    if state.judged:
        reasons += [reason for reason in (_availability(state), _failing(state, folder)) if reason]
    if state.kept or not state.is_over:
        reasons.append(f"Run the playbook again with vmotion_test_folder={folder}: the test goes on where it stopped.")
    return " ".join(reasons)


def passed(state: TrialState, folder: str) -> str:
    """Return the sentence of a test that passed."""
    moved = ", and all moved" if state.moves else ""
    return f"Continuous{moved}; the evidence is in {folder}."


def _availability(state: TrialState) -> str:
    before, after = (
        ((read or {}).get("ha") or {}).get("enabled") for read in (state.cluster_before, state.cluster_after)
    )
    return "" if before == after else f"Cluster {state.cluster}: HA was switched during the test; set it back."


def _failing(state: TrialState, folder: str) -> str:
    judged = state.judged or {}
    # An observation has only moves of others, and a window of empty hosts may have none.
    has_moved = judged["moved"] == "all" or not state.judged_moves
    if judged["verdict"] == "continuous" and has_moved and not state.stopped:
        return ""
    places = move_lines.hosts_after(state.at, state.every_move)
    stays = ", ".join(f"{worker} on {host}" for worker, host in places.items())
    return (
        f"Cluster {state.cluster}: the job is {judged['verdict']} and {judged['moved']} of the moves took place"
        f"{': ' + state.stopped if state.stopped else ''}; the workers stay where they are: {stays}; the evidence "
        f"is in {folder}."
    )
