# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A cluster as input of the evacuation planner: hosts with their room, virtual machines, rules, DRS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...capacity import hosts, machines
from ...logic.hosts.evacuation import VGPU_BY_DRS, Apart, Cluster, MustRun, Room, Vm
from ...vsphere.properties import Values, read_many
from ...vsphere.sdk import vim
from ...vsphere.session import Session

HOST_PATHS = ("vm", *hosts.PATHS)


@dataclass(frozen=True)
class Reading:
    """The properties of one cluster's hosts, by object id."""

    hosts: Mapping[str, Values]

    @property
    def names(self) -> dict[str, str]:
        return {key: values["name"] for key, values in self.hosts.items()}

    def refs(self, keys: Iterable[str]) -> list[Any]:
        """The virtual machines on some of the hosts."""
        return [vm for key in keys for vm in self.hosts[key].get("vm") or []]


def read(session: Session, parent: Any, leaving: Iterable[str]) -> Cluster:
    """The cluster, or the single host, that ``parent`` is; ``leaving`` are object ids of hosts."""
    cluster_paths = ("name", "host", "configurationEx")
    (values,) = read_many(session, [parent], cluster_paths).values()
    reading = Reading(read_many(session, values.get("host") or [], HOST_PATHS))
    gone = [key for key in leaving if key in reading.hosts]
    moving = machines.read(session, reading.refs(gone), reading.names)
    wanted = {profile for vm in moving for profile in vm.vgpus}
    taking = [key for key in reading.hosts if key not in gone and wanted & hosts.offered(reading.hosts[key])]
    staying = machines.read(session, reading.refs(taking), reading.names)
    rooms = tuple(_room(key, one, taking, staying) for key, one in reading.hosts.items())
    hot = bool(wanted) and machines.hot_migrate(session)
    return _configured(values, reading, rooms, (*moving, *staying), hot)


def _room(key: str, host: Values, taking: Sequence[str], vms: Sequence[Vm]) -> Room:
    here = [vm for vm in vms if vm.host == host["name"]] if key in taking else []
    free = hosts.memory_mb(host) - sum(vm.reserved_mb for vm in here)
    slots = hosts.slots(host, {vm.key: vm.vgpus for vm in here})
    return Room(host["name"], hosts.in_service(host), slots, free if key in taking else None)


def _configured(values: Values, reading: Reading, rooms: tuple[Room, ...], vms: tuple[Vm, ...], hot: bool) -> Cluster:
    config = values.get("configurationEx")
    drs = getattr(config, "drsConfig", None)
    mode = str(drs.defaultVmBehavior) if drs and drs.enabled else ""
    options = {one.key: str(one.value) for one in (drs.option if drs else None) or []}
    overridden = {one.key._moId for one in getattr(config, "drsVmConfig", None) or [] if _left_by_drs(one)}
    return Cluster(
        name=values["name"],
        rooms=rooms,
        vms=tuple(_with_override(vm, overridden) for vm in vms),
        must_run=tuple(_must_run(config, reading.names)),
        apart=tuple(_apart(config)),
        drs=mode,
        vgpu_by_drs=options.get(VGPU_BY_DRS, "0") not in {"0", ""},
        hot_migrate=hot,
    )


def _left_by_drs(one: Any) -> bool:
    return one.enabled is False or one.behavior in {"manual", "partiallyAutomated"}


def _with_override(vm: Vm, overridden: set[str]) -> Vm:
    return replace(vm, left_by_drs=True) if vm.key in overridden else vm


def _must_run(config: Any, names: Mapping[str, str]) -> Iterable[MustRun]:
    groups = {group.name: group for group in getattr(config, "group", None) or []}
    for rule in getattr(config, "rule", None) or []:
        if not (isinstance(rule, vim.cluster.VmHostRuleInfo) and rule.enabled and rule.mandatory):
            continue
        vms = frozenset(vm._moId for vm in groups[rule.vmGroupName].vm or [])
        on, not_on = (
            {names.get(host._moId, "") for host in groups[name].host or []} if name else set()
            for name in (rule.affineHostGroupName, rule.antiAffineHostGroupName)
        )
        yield MustRun(str(rule.name), vms, frozenset(on or set(names.values()) - not_on))


def _apart(config: Any) -> Iterable[Apart]:
    for rule in getattr(config, "rule", None) or []:
        if isinstance(rule, vim.cluster.AntiAffinityRuleSpec) and rule.enabled:
            yield Apart(str(rule.name), frozenset(vm._moId for vm in rule.vm or []))
