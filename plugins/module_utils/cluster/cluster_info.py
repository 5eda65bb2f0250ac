# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The facts about one cluster that matter for changes of its hosts, read in few calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..errors import NotFound
from ..hosts import management
from ..maintenance import availability, out_of_service, service_note, trouble
from ..maintenance.lock.folders import LockFolders
from ..maintenance.lock.lock import seen_at
from ..maintenance.lock.lock_rules import stamp
from ..vsphere import host_clocks
from ..vsphere.fleet import Fleet, Host, find_cluster
from ..vsphere.properties import id_of
from ..vsphere.session import Session
from ..workers.capacity import host_capacity, machines
from ..workers.capacity.running_vm import Vm
from . import licences, vgpu_slots
from .shared_settings import vcenter_options

GATHER = ("clocks", "vms")
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


class ClusterFacts:
    """One cluster with its hosts, as read once."""

    def __init__(self, session: Session, name: str) -> None:
        self.session, self.name = session, name
        self.ref, self.values = find_cluster(session, name, CLUSTER_PATHS)
        refs = self.values.get("host") or []
        fleet = Fleet(session, [Host(session, ref, "") for ref in refs], HOST_PATHS)
        fleet.refresh()
        for host in fleet.hosts:
            host.name = host["name"]
        self.hosts: Sequence[Host] = sorted(fleet.hosts, key=lambda host: host.name)
        self.names = {host.ref._moId: host.name for host in self.hosts} | {self.ref._moId: name}

    def must_have(self, names: Collection[str]) -> None:
        """Refuse hosts that are not of this cluster."""
        strangers = sorted(set(names) - {host.name for host in self.hosts})
        if strangers:
            raise NotFound(
                self.name, "plan for the hosts that leave", f"it has no {', '.join(strangers)}", "correct leaving"
            )

    def read(self, gather: Collection[str]) -> dict[str, Any]:
        """The facts as plain data."""
        config, now = self.values["configurationEx"], host_clocks.server_time(self.session)
        vms = self._vms(everywhere="vms" in gather)
        facts = {
            **self._identity(now),
            "hosts": [self._host(host) for host in self.hosts],
            "ha": availability.ha(config, self.values.get("summary"), len(self.hosts)),
            "drs": availability.drs(config),
            "evc": getattr(self.values.get("summary"), "currentEVCModeKey", None),
            "vsan": availability.vsan(config, self.hosts),
            "alarms": trouble.alarms(self.session, self.names, self._alarm_states()),
            "tasks": trouble.tasks(self.session, self.ref, self.hosts, self.names),
            "out_of_service": trouble.out_of_service(self.session, self.hosts),
            "lock": seen_at(self._lock().look().record, now),
            "licences": licences.assigned(self.session, self.names, now),
            "clocks": host_clocks.of(self.session, self.hosts, compare="clocks" in gather),
            "gpu_slots": vgpu_slots.by_profile(self.hosts, vms),
            "vms": [_as_dict(vm) for vm in sorted(vms, key=lambda vm: (vm.host, vm.name))] if "vms" in gather else None,
        }
        most, why = out_of_service.allowed(facts)
        return {**facts, "max_out_of_service": {"allowed": most, "why": why}}

    def _lock(self) -> LockFolders:
        return LockFolders(self.session, self.name, self.values["parent"], id_of(self.ref))

    def _identity(self, now: Any) -> dict[str, Any]:
        about = self.session.content.about
        places = {host.name: management.Place(host.ref, self.ref) for host in self.hosts}
        managed = list(management.of(self.session, places).values())
        return {
            "name": self.name,
            "vcenter": {
                "version": about.version,
                "build": about.build,
                "instance_uuid": about.instanceUuid,
                "time": stamp(now),
            },
            "options": vcenter_options(self.session),
            "image_managed": any(one["image_managed"] for one in managed),
            "configuration_profile": any(one["configuration_profile"] for one in managed),
        }

    def _host(self, host: Host) -> dict[str, Any]:
        return {
            "host": host.name,
            "version": host["config.product.version"],
            "build": host["config.product.build"],
            "connection": host["runtime.connectionState"],
            "maintenance": host.in_maintenance,
            "ours": service_note.ours(host) is not None,
        }

    def _alarm_states(self) -> list[Any]:
        objects = [self.values, *(host.properties for host in self.hosts)]
        return [state for one in objects for state in one.get("triggeredAlarmState") or []]

    def _vms(self, *, everywhere: bool) -> list[Vm]:
        """The running virtual machines; without ``everywhere`` only on hosts that offer virtual GPUs."""
        chosen = [host for host in self.hosts if everywhere or host_capacity.offered(host.properties)]
        refs = [vm for host in chosen for vm in host["vm"] or []]
        return machines.read(self.session, refs, self.names)


def _as_dict(vm: Vm) -> Mapping[str, Any]:
    owners = {"folder": vm.folder, "pool": vm.pool, "owner": vm.owner}
    return {"vm": vm.name, "host": vm.host, **owners, "vgpus": list(vm.vgpus), "fixed": list(vm.fixed)}
