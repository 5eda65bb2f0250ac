# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: check the nodes and Kubernetes before a move; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....core.findings import WARN, stops
from ...checks import move_lines, node_findings
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState
from .transport_reading import nodes_of


def _refused(state: TrialState, reasons: Sequence[Mapping[str, Any]]) -> Entries:
    """Return the entry of the next move, which is not made because of these findings; no entry without findings."""
    if not reasons:
        return []
    move = move_lines.observed({"msg": not_withstood(state.cluster, reasons)}, state.left[0], state.ranks)
    return [("move", {"move": move})]


def not_withstood(cluster: str, reasons: Sequence[Mapping[str, Any]]) -> str:
    """Return the error that names the findings that stop a move."""
    texts = " ".join(reason["text"] for reason in reasons)
    return f"Cluster {cluster}: {texts} Remove the cause, or accept it with vmotion_test_accept."


def _guests(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("training_guest_info", {**nodes_of(state), "checkpoints": state.settings["checkpoints"]})


def _guests_entries(result: Result, state: TrialState, controller: Controller) -> Entries:
    """Keep the findings; if one of them stops the move, the move is not made."""
    settings = state.settings
    rows = node_findings.findings(
        result["nodes"],
        settings["stun_budget"],
        controller.now,
        (state.managers or [], controller.drivers),
        lasts=float(settings["duration"]),
        minutes=float(settings["checkpoint_minutes"]) if settings["checkpoints"] else 0.0,
    )
    kept = {"findings": rows, "accepted": list(settings["accept"])}
    return [("guests", kept), *_refused(state, stops(rows, settings["accept"]))]


def _needs_guests(state: TrialState) -> bool:
    has_job = state.settings["guest_checks"] and not state.outlives_job
    return bool(state.left) and has_job and "guests" not in state.lately


GUESTS = Step(
    name="guests",
    title="checks the timers, licences, checkpoints and drivers of the nodes",
    due=(Due(Phase.ROUND, _needs_guests, after=("hold",)),),
    action=_guests,
    entries=_guests_entries,
    kinds=(EntryKind("guests"),),
    is_repeated=True,
)


def _preflight(state: TrialState, _controller: Controller) -> ModuleCall:
    """Return the call that checks the nodes of the next moves and the pods of the job."""
    kubernetes = state.settings["kubernetes"]
    names = kubernetes.get("names") or {}
    moved = []
    for worker in [move["worker"] for move in state.next_wave]:
        moved += [node for node, name in names.items() if name == worker] or [worker]
    job: dict[str, Any] = {
        key: kubernetes[key] for key in ("name", "namespace", "kubeconfig", "context") if key in kubernetes
    }
    options = {"stun_seconds": state.settings["stun_budget"], "accept": state.settings["accept"]}
    return ModuleCall("mpijob_preflight_info", {**job, **options, "moved": moved, "at_once": len(moved) > 1})


def _preflight_entries(result: Result, state: TrialState, _controller: Controller) -> Entries:
    """Keep the findings; if one of them stops the move, the move is not made."""
    kept = {"findings": result["findings"], "accepted": list(state.settings["accept"])}
    return [("preflight", kept), *_refused(state, result["stops"])]


def _needs_preflight(state: TrialState) -> bool:
    has_job = bool(state.settings.get("kubernetes")) and not state.outlives_job
    return bool(state.left) and has_job and "preflight" not in state.lately


def _warnings(entry: Entry, _state: TrialState) -> list[str]:
    """Return the warnings; errors are in the message of the move that is not made."""
    return [str(finding["text"]) for finding in entry["findings"] if finding["severity"] == WARN]


PREFLIGHT = Step(
    name="preflight",
    title="checks in Kubernetes whether something would end the job during the move",
    due=(Due(Phase.ROUND, _needs_preflight, after=("guests",)),),
    action=_preflight,
    entries=_preflight_entries,
    kinds=(EntryKind("preflight", messages=_warnings),),
    is_repeated=True,
)
