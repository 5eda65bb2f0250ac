# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Steps: read the cluster, the vGPU managers and the VIBs of its hosts; pure."""

from __future__ import annotations

from typing import Any

from ....core.vgpu_manager import is_manager
from ..step import Controller, Due, Entries, EntryKind, ModuleCall, Phase, Result, Step
from ..trial_state import Entry, TrialState


def _cluster(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("cluster_info", {"cluster": state.cluster})


def _cluster_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("cluster", {"cluster": result["cluster"]})]


def _keep_cluster(state: TrialState, entry: Entry) -> None:
    state.cluster_after = dict(entry["cluster"])
    state.cluster_before = state.cluster_before or state.cluster_after


CLUSTER = Step(
    name="cluster",
    title="reads the cluster",
    due=(
        Due(Phase.OPENING, lambda state: state.cluster_before is None, after=("job",)),
        Due(Phase.ENDING, lambda state: state.judged is not None, after=("stop",)),
    ),
    action=_cluster,
    entries=_cluster_entry,
    kinds=(EntryKind("cluster", _keep_cluster),),
)


def _vibs(state: TrialState, _controller: Controller) -> ModuleCall:
    return ModuleCall("esxi_info", {"cluster": state.cluster, "gather": ["vib"], "fail_unreachable": False})


def _managers_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    """Keep the vGPU manager of each host, against which drivers are checked."""
    return [("managers", {"hosts": [_with_managers(host) for host in result["hosts"]]})]


def _with_managers(host: dict[str, Any]) -> dict[str, Any]:
    running = (host.get("vibs") or {}).get("running") or []
    return {"host": host["host"], "vibs": {"running": [vib for vib in running if is_manager(vib["name"])]}}


def _keep_managers(state: TrialState, entry: Entry) -> None:
    state.managers = list(entry["hosts"])


def _needs_managers(state: TrialState) -> bool:
    return bool(state.left) and state.settings["guest_checks"] and state.managers is None


MANAGERS = Step(
    name="managers",
    title="reads the vGPU managers of the hosts",
    due=(Due(Phase.ROUND, _needs_managers, after=("plan",)),),
    action=_vibs,
    entries=_managers_entry,
    kinds=(EntryKind("managers", _keep_managers),),
)


def _hosts_entry(result: Result, _state: TrialState, _controller: Controller) -> Entries:
    return [("hosts", {"hosts": result["hosts"]})]


def _keep_hosts(state: TrialState, entry: Entry) -> None:
    state.hosts = list(entry["hosts"])


HOSTS = Step(
    name="hosts",
    title="reads the VIBs of the hosts",
    due=(Due(Phase.ENDING, lambda state: state.judged is not None, after=("cluster",)),),
    action=_vibs,
    entries=_hosts_entry,
    kinds=(EntryKind("hosts", _keep_hosts),),
)
