# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: read the connections of the ranks, and the RDMA counters of the hosts; pure."""

from __future__ import annotations

from typing import Any

from ....training.transport.connections import uses_rdma
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState


def nodes_of(state: TrialState) -> dict[str, Any]:
    """Return the options with which modules reach the nodes and find the records there."""
    return {"nodes": state.settings["nodes"], "folder": state.settings["records"]}


def reading(state: TrialState, _controller: Controller) -> ModuleCall:
    """Return the call that reads the connections and the checksums of the ranks."""
    return ModuleCall("training_transport_info", {**nodes_of(state), "timeout": state.settings["look_timeout"]})


def _look_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("look", {"nodes": result["nodes"], "uses_rdma": uses_rdma(result["nodes"])})]


def _keep_look(state: TrialState, entry: Entry) -> None:
    """Keep the connections; if they use RDMA, the counters of the hosts are read next."""
    state.looks.append(
        {
            "nodes": entry["nodes"],
            "hosts": None if entry["uses_rdma"] else [],
            "moves": len(state.moves),
            "others": list(state.others),
            "rdma": state.rdma,
        }
    )


def _is_due_at_first(state: TrialState) -> bool:
    return not state.looks or (state.is_measured and len(state.looks) == 1)


def _is_due_after_move(state: TrialState) -> bool:
    """Return whether to read now: after the job resumed, and with RDMA before too, because counters are compared."""
    if not state.is_owed or state.outlives_job:
        return False
    if "advance" in state.lately:
        return "look" not in state.since_last("advance")
    return "look" not in state.lately and uses_rdma(state.looks[-1]["nodes"])


LOOK = Step(
    name="look",
    title="reads the connections of the ranks",
    due=(
        Due(Phase.OPENING, _is_due_at_first, after=("counters",)),
        Due(Phase.MOVE, _is_due_after_move, after=("move",)),
    ),
    action=reading,
    entries=_look_entry,
    kinds=(EntryKind("look", _keep_look),),
)


def _counters(state: TrialState, _controller: Controller) -> ModuleCall:
    options = {"cluster": state.cluster, "gather": ["rdma", "network", "pvrdma"], "fail_unreachable": False}
    return ModuleCall("esxi_info", options)


def _counters_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("counters", {"hosts": result["hosts"]})]


def _keep_counters(state: TrialState, entry: Entry) -> None:
    state.looks[-1]["hosts"] = list(entry["hosts"])


COUNTERS = Step(
    name="counters",
    title="reads the RDMA counters of the hosts",
    # Each phase of moves comes after the opening, so that the counters are read immediately after the connections.
    due=(Due(Phase.OPENING, lambda state: bool(state.looks) and state.looks[-1]["hosts"] is None, after=("warm",)),),
    action=_counters,
    entries=_counters_entry,
    kinds=(EntryKind("counters", _keep_counters),),
)
