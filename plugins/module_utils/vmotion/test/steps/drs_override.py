# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: keep DRS from moving the workers, and restore its settings; pure."""

from __future__ import annotations

from ..step import Controller, Due, EntryKind, ModuleCall, Phase, Step
from ..trial_state import Entry, TrialState

RULE = "vmotion-test"


def _override(state: TrialState, _controller: Controller) -> ModuleCall:
    rule = {"cluster": state.cluster, "name": RULE, "workers": sorted(state.at), "one_per_host": False}
    return ModuleCall("worker_rules", {**rule, "drs_override": state.settings["drs_override"]})


def _needs_override(state: TrialState) -> bool:
    return bool(state.settings["drs_override"]) and not state.is_overridden


def _is_overridden(state: TrialState, _entry: Entry) -> None:
    state.is_overridden = True


def _may_have_changed(state: TrialState) -> None:
    state.is_overridden = False


OVERRIDE = Step(
    name="override",
    title="keeps DRS from moving the workers",
    due=(Due(Phase.OPENING, _needs_override, after=("watch",)),),
    action=_override,
    kinds=(EntryKind("override", _is_overridden),),
    continued=_may_have_changed,
)


def _restore(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("worker_rules", {"cluster": state.cluster, "name": RULE, "state": "absent"})


RESTORE = Step(
    name="restore",
    title="restores the DRS settings of the workers",
    due=(Due(Phase.ENDING, lambda state: bool(state.settings["drs_override"]), after=("watch",)),),
    action=_restore,
    kinds=(EntryKind("restore"),),
    gives_back=True,
)
