# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: take, renew and free the cluster's lock; pure."""

from __future__ import annotations

from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState


def _hold(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("cluster_lock", {"cluster": state.cluster})


def _run_of(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("hold", {"run": result["state"]["run"]})]


def _is_held(state: TrialState, entry: Entry) -> None:
    state.run = str(entry["run"])


def _is_not_held(state: TrialState) -> None:
    """Take the lock again, even if it was freed: DRS may not have its settings back."""
    state.run = ""
    if state.is_over and state.settings["drs_override"] and "restore" not in state.lately:
        state.is_freed = False
        state.lately = [kind for kind in state.lately if kind != "free"]


HOLD = Step(
    name="hold",
    title="takes or renews the lock of the cluster",
    due=(
        Due(Phase.LOCK, lambda state: not state.run and not state.is_freed and not state.settings.get("observe")),
        Due(Phase.ROUND, lambda state: bool(state.left) and "hold" not in state.lately, after=("managers",)),
        Due(Phase.HOST, lambda state: not (state.host and state.host.is_out) and "hold" not in state.lately),
    ),
    action=_hold,
    entries=_run_of,
    kinds=(EntryKind("hold", _is_held),),
    continued=_is_not_held,
)


def _free(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("cluster_lock", {"cluster": state.cluster, "state": "free"})


def _is_freed(state: TrialState, _entry: Entry) -> None:
    state.is_freed, state.run = True, ""


FREE = Step(
    name="free",
    title="frees the lock of the cluster",
    due=(Due(Phase.ENDING, lambda state: not state.settings.get("observe"), after=("unwatch",)),),
    action=_free,
    kinds=(EntryKind("free", _is_freed),),
    gives_back=True,
)
