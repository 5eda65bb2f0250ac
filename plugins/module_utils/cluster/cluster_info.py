"""The facts about one cluster that matter for changes of its hosts, read in few calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ..errors import CollectionError, NotFound
from ..hosts import management, remediation
from ..maintenance import cluster_problems, service_note, stop_rules
from ..maintenance.cluster_facts import (
    ClusterFacts,
    ClusterIdentity,
    DrsState,
    HaState,
    HostSlots,
    HostState,
    ProfileSlots,
    Remediation,
    VsanState,
)
from ..maintenance.lock.cluster_lock import record_at
from ..maintenance.lock.folders import LockFolders
from ..maintenance.lock.lock_rules import stamp
from ..vsphere import host_clocks, rest
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host, HostSet, find_cluster
from ..vsphere.properties import Properties, id_of, read_many
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from ..workers.capacity import host_capacity, machines, profile_info, server_capacity
from ..workers.capacity.running_vm import Vm
from ..workers.capacity.server_capacity import Capacity
from ..workers.placement.gpu_slots import Slots
from .shared_settings import vcenter_options

# The capacities that the server reports, by host and profile.
Counted = Mapping[str, Mapping[str, Capacity]]
EVALUATION = "eval"
GATHER = ("clocks", "occupied", "vms")
CLUSTER_PATHS = ("name", "parent", "host", "configurationEx", "summary", "triggeredAlarmState")
HOST_PATHS = (
    "vm",
    *host_capacity.PATHS,
    "config.dateTimeInfo",
    "config.product.version",
    "config.product.build",
    "config.service.service",
    "configManager.dateTimeSystem",
    "configManager.vsanInternalSystem",
    "triggeredAlarmState",
    *service_note.PATHS,
)
_RESYNC_KEY = "bytesToSync"


class ClusterReader:
    """One cluster with its hosts, as read once."""

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name
        self.ref, self.values = find_cluster(session, name, CLUSTER_PATHS)
        refs = self.values.get("host") or []
        version = session.api_version
        more = (*host_capacity.binding_paths(version), *host_capacity.class_paths(version))
        paths = (*HOST_PATHS, *more)
        host_set = HostSet(session, [Host(session, ref, "") for ref in refs], paths)
        host_set.refresh()
        for host in host_set.hosts:
            host.name = host["name"]
        self.hosts: Sequence[Host] = sorted(host_set.hosts, key=lambda host: host.name)
        profile_info.describe(session, {host.ref._moId: host.properties for host in self.hosts})
        self.names = {host.ref._moId: host.name for host in self.hosts} | {self.ref._moId: name}

    def must_have(self, names: Collection[str]) -> None:
        strangers = sorted(set(names) - {host.name for host in self.hosts})
        if strangers:
            raise NotFound(
                self.name, "plan for the hosts that leave", f"it has no {', '.join(strangers)}", "correct leaving"
            )

    def read(self, gather: Collection[str]) -> ClusterFacts:
        config, now = self.values["configurationEx"], host_clocks.server_time(self.session)
        identity = self._identity(now)
        vms = self._vms(everywhere="vms" in gather)
        facts: ClusterFacts = {
            **identity,
            "hosts": [self._host(host) for host in self.hosts],
            "ha": ha(config, self.values.get("summary"), len(self.hosts)),
            "drs": drs(config),
            "evc": getattr(self.values.get("summary"), "currentEVCModeKey", None),
            "vsan": vsan(config, self.hosts),
            "alarms": cluster_problems.alarms(self.session, self.names, self._alarm_states()),
            "tasks": cluster_problems.tasks(self.session, self.ref, self.hosts, self.names),
            "remediations": self._remediations() if identity["image_managed"] else [],
            "out_of_service": cluster_problems.out_of_service(self.session, self.hosts),
            "lock": record_at(self._lock().read().record, now),
            "licences": licences(self.session, self.names, now),
            "clocks": host_clocks.clocks(self.session, self.hosts, compare="clocks" in gather),
            "gpu_slots": slots_by_profile(self.hosts, vms, self._counted()),
            "vms": [_as_dict(vm) for vm in sorted(vms, key=lambda vm: (vm.host, vm.name))] if "vms" in gather else None,
            "occupied": self._occupied() if "occupied" in gather else None,
            "max_out_of_service": {"allowed": 0, "why": ""},
        }
        most, why = stop_rules.allowed(facts)
        return {**facts, "max_out_of_service": {"allowed": most, "why": why}}

    def _remediations(self) -> list[Remediation]:
        """Return the remediations that run on a cluster that an image manages."""
        try:
            with rest.opened(self.session) as api:
                found = remediation.running(api, id_of(self.ref), self.name)
        except CollectionError as error:
            return [{"user": "", "hosts": [], "error": str(error)}]
        named = [[self.names.get(moid, moid) for moid in one["hosts"]] for one in found]
        return [{"user": one["user"], "hosts": hosts, "error": ""} for one, hosts in zip(found, named)]

    def _lock(self) -> LockFolders:
        return LockFolders(self.session, self.name, self.values["parent"], id_of(self.ref))

    def _identity(self, now: Any) -> ClusterIdentity:
        about = self.session.content.about
        refs = {host.name: management.HostRefs(host.ref, self.ref) for host in self.hosts}
        managed = list(management.managers_of(self.session, refs).values())
        return {
            "name": self.name,
            "id": id_of(self.ref),
            "vcenter": {
                "version": about.version,
                "build": about.build,
                "instance_uuid": about.instanceUuid,
                "time": stamp(now),
            },
            "options": vcenter_options(self.session),
            "image_managed": any(host["image_managed"] for host in managed),
            "configuration_profile": any(host["configuration_profile"] for host in managed),
        }

    def _host(self, host: Host) -> HostState:
        return {
            "host": host.name,
            "version": host["config.product.version"],
            "build": host["config.product.build"],
            "connection": host["runtime.connectionState"],
            "maintenance": host.in_maintenance,
            "ours": service_note.note_of_a_rollout(host) is not None,
            "device_classes": {
                name: {"moves": moves, "network_card": host_capacity.are_cards(host.properties, name)}
                for name, moves in host_capacity.device_classes(host.properties).items()
            },
        }

    def _alarm_states(self) -> list[ApiObject]:
        objects = [self.values, *(host.properties for host in self.hosts)]
        return [state for values in objects for state in values.get("triggeredAlarmState") or []]

    def _counted(self) -> Counted:
        return {
            host.name: server_capacity.read(self.session, host.ref, host_capacity.offered(host.properties))
            for host in self.hosts
            if host_capacity.in_service(host.properties)
        }

    def _occupied(self) -> list[str]:
        """Return the hosts with running virtual machines, without reading their devices: there may be thousands."""
        refs = [vm for host in self.hosts for vm in host["vm"] or []]
        read = read_many(self.session, refs, ("runtime.powerState", "runtime.host")).values()
        running = {id_of(vm.get("runtime.host")) for vm in read if vm.get("runtime.powerState") == "poweredOn"}
        return [host.name for host in self.hosts if host.ref._moId in running]

    def _vms(self, *, everywhere: bool) -> list[Vm]:
        """Return the running virtual machines; without ``everywhere`` only on hosts that offer virtual GPUs."""
        chosen = [host for host in self.hosts if everywhere or host_capacity.offered(host.properties)]
        refs = [vm for host in chosen for vm in host["vm"] or []]
        return machines.read(self.session, refs, self.names)


def _as_dict(vm: Vm) -> Mapping[str, object]:
    owners = {"folder": vm.folder, "pool": vm.pool, "owner": vm.owner}
    return {"vm": vm.name, "host": vm.host, **owners, "vgpus": list(vm.vgpus), "fixed": list(vm.fixed)}


def licences(session: Session, names: Mapping[str, str], now: datetime) -> list[dict[str, Any]]:
    """Return the licences of vCenter and of each host of the cluster."""
    with translating_faults(session.server, "read its licences"):
        manager = session.content.licenseManager.licenseAssignmentManager
        assigned = manager.QueryAssignedLicenses(None) if manager else []
    names_by_id = {**names, session.content.about.instanceUuid: session.server}
    return [
        _licence(names_by_id[assignment.entityId], assignment.assignedLicense, now)
        for assignment in assigned or []
        if assignment.entityId in names_by_id
    ]


def _licence(name: str, licence: ApiObject, now: datetime) -> dict[str, object]:
    values = {entry.key: entry.value for entry in licence.properties or [] if entry.key != "feature"}
    features = [entry.value for entry in licence.properties or [] if entry.key == "feature"]
    ends = _licence_end(values, now)
    return {
        "object": name,
        "name": licence.name,
        "edition": licence.editionKey,
        "evaluation": licence.editionKey == EVALUATION,
        "expires": stamp(ends) if ends else None,
        "expired": bool(ends and ends <= now),
        "features": sorted(str(getattr(entry, "value", entry)) for entry in features),
    }


def _licence_end(values: Properties, now: datetime) -> datetime | None:
    if isinstance(values.get("expirationDate"), datetime):
        moment: datetime = values["expirationDate"]
        return moment
    for key, unit in (("expirationHours", 1), ("expirationMinutes", 1 / 60)):
        if key in values:
            return now + timedelta(hours=float(values[key]) * unit)
    return None


def slots_by_profile(hosts: Sequence[Host], vms: Sequence[Vm], counted: Counted | None = None) -> list[ProfileSlots]:
    """Return the slots of each profile that a host in service offers; ``counted`` are the server's counts."""
    slots_by_host = {
        host.name: _slots_of_host(host, vms) for host in hosts if host_capacity.in_service(host.properties)
    }
    profiles = sorted({profile for slots in slots_by_host.values() for profile in slots.offered})
    return [_slots_of_profile(profile, slots_by_host, counted or {}) for profile in profiles]


def _slots_of_host(host: Host, vms: Sequence[Vm]) -> Slots:
    return host_capacity.slots(host.properties, {vm.key: vm.vgpus for vm in vms if vm.host == host.name})


def _slots_of_profile(profile: str, slots_by_host: dict[str, Slots], counted: Counted) -> ProfileSlots:
    capacities = {
        name: counted.get(name, {}).get(profile) or _by_names(slots, profile) for name, slots in slots_by_host.items()
    }
    hosts: list[HostSlots] = [
        {"host": name, "used": one.used, "free": one.free, "reserved": one.reserved}
        for name, one in capacities.items()
        if one.total
    ]
    return {
        "profile": profile,
        "used": sum(host["used"] for host in hosts),
        "free": sum(host["free"] for host in hosts),
        "reserved": sum(host["reserved"] for host in hosts),
        "hosts": hosts,
    }


def _by_names(slots: Slots, profile: str) -> Capacity:
    used = sum(gpu.used.count(profile) for gpu in slots.gpus)
    return Capacity(used, slots.free(profile), slots.total(profile), 0)


def ha(config: ApiObject, summary: ApiObject, hosts: int) -> HaState:
    """Return the state of HA: its policy, its reserved failover hosts, and the failures that it tolerates now."""
    das = config.dasConfig
    policy, details = _policy(das)
    return {
        "enabled": bool(das.enabled),
        "admission_control": bool(das.admissionControlEnabled),
        "policy": policy,
        "failover_hosts": stop_rules.failover_hosts(policy, hosts, details),
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
