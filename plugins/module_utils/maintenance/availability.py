"""HA, DRS and vSAN of a cluster as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.sdk import ApiObject, vim
from . import out_of_service
from .cluster_facts import DrsState, HaState, VsanState

_RESYNC_KEY = "bytesToSync"


def ha(config: ApiObject, summary: ApiObject, hosts: int) -> HaState:
    """Return the state of HA: its policy, its reserved failover hosts, and the failures that it tolerates now."""
    das = config.dasConfig
    policy, details = _policy(das)
    return {
        "enabled": bool(das.enabled),
        "admission_control": bool(das.admissionControlEnabled),
        "policy": policy,
        "failover_hosts": out_of_service.failover_hosts(policy, hosts, details),
        # The server reports the currently tolerated failures only for the policy that counts hosts.
        "failover_hosts_now": _now(summary),
    }


def _policy(das: ApiObject) -> tuple[str, Mapping[str, object]]:
    policy = das.admissionControlPolicy
    if isinstance(policy, vim.cluster.FailoverHostAdmissionControlPolicy):
        return "dedicated", {"hosts": policy.failoverHosts or []}
    if isinstance(policy, vim.cluster.FailoverResourcesAdmissionControlPolicy):
        if policy.autoComputePercentages is not False and policy.failoverLevel:
            return "hosts", {"level": policy.failoverLevel}
        return "percent", {"cpu": policy.cpuFailoverResourcesPercent, "memory": policy.memoryFailoverResourcesPercent}
    level = getattr(policy, "failoverLevel", None) or das.failoverLevel
    return ("hosts", {"level": level}) if level is not None else ("unknown", {})


def _now(summary: object) -> int | None:
    info = getattr(summary, "admissionControlInfo", None)
    return getattr(info, "currentFailoverLevel", None)


def drs(config: ApiObject) -> DrsState:
    """Return the state of DRS, with its advanced options as text."""
    drs_config = config.drsConfig
    options = sorted(drs_config.option or [], key=lambda option: str(option.key))
    return {
        "enabled": bool(drs_config.enabled),
        "behaviour": str(drs_config.defaultVmBehavior) if drs_config.defaultVmBehavior else None,
        "vmotion_rate": drs_config.vmotionRate,
        "options": {option.key: str(option.value) for option in options},
    }


def vsan(config: ApiObject, hosts: Sequence[Host]) -> VsanState:
    """Return whether vSAN is on, and the bytes left to resynchronise; None if they are unknown."""
    on = bool(config.vsanConfigInfo and config.vsanConfigInfo.enabled)
    answering = next((host for host in hosts if host.reachable and not host.in_maintenance), None)
    if not on:
        return {"enabled": False, "resync_bytes": 0}
    if answering is None or answering["configManager.vsanInternalSystem"] is None:
        return {"enabled": True, "resync_bytes": None}
    with translating_faults(answering.name, "ask what vSAN is resyncing"):
        text = answering["configManager.vsanInternalSystem"].QuerySyncingVsanObjects(uuids=[])
    return {"enabled": True, "resync_bytes": resync_bytes(text)}


def resync_bytes(text: str) -> int | None:
    """Return the bytes that all components still have to resynchronise; None for an unknown format."""
    try:
        answer = json.loads(text)
        return sum(_left(answer["dom_objects"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _left(node: object) -> list[int]:
    if not isinstance(node, dict):
        return []
    own_bytes = [int(node[_RESYNC_KEY])] if _RESYNC_KEY in node else []
    return [*own_bytes, *(left for child in node.values() for left in _left(child))]
