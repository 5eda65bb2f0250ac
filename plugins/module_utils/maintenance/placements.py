"""A cluster as the input of the evacuation planner: hosts with their free capacity, virtual machines, rules, DRS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..vsphere.properties import Values, read_many
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from ..workers.capacity import host_capacity, machines, profile_info
from ..workers.capacity.running_vm import Vm
from .evacuation import VGPU_BY_DRS, AntiAffinityRule, EvacuationCluster, FreeCapacity, VmHostRule

HOST_PATHS = ("vm", *host_capacity.PATHS)


@dataclass(frozen=True)
class ClusterHosts:
    """The properties of one cluster's hosts, by object id."""

    hosts: Mapping[str, Values]

    @property
    def names(self) -> dict[str, str]:
        return {key: values["name"] for key, values in self.hosts.items()}

    def refs(self, keys: Iterable[str]) -> list[ApiObject]:
        """Return the virtual machines on some of the hosts."""
        return [vm for key in keys for vm in self.hosts[key].get("vm") or []]


def read_cluster(
    session: Session, parent: object, leaving: Iterable[str], *, each_alone: bool = False
) -> EvacuationCluster:
    """Return the cluster, or single host, of ``parent``; ``leaving`` contains object ids of hosts.

    With ``each_alone``, all other hosts stay when one leaves, and can take its virtual machines.
    """
    cluster_paths = ("name", "host", "configurationEx")
    (values,) = read_many(session, [parent], cluster_paths).values()
    reading = ClusterHosts(read_many(session, values.get("host") or [], HOST_PATHS))
    profile_info.describe(session, reading.hosts)
    gone = [key for key in leaving if key in reading.hosts]
    moving = machines.read(session, reading.refs(gone), reading.names)
    desired = {profile for vm in moving for profile in vm.vgpus}
    offering = [key for key in reading.hosts if desired & host_capacity.offered(reading.hosts[key])]
    staying = machines.read(session, reading.refs(key for key in offering if key not in gone), reading.names)
    taking = {key: reading.hosts[key]["name"] for key in offering if each_alone or key not in gone}
    there = _by_host([*moving, *staying], taking.values())
    rooms = tuple(_room(values, there.get(taking.get(key, ""))) for key, values in reading.hosts.items())
    hot = bool(desired) and machines.hot_migrate(session)
    return _configured(values, reading, rooms, (*moving, *staying), hot)


def _by_host(vms: Iterable[Vm], names: Iterable[str]) -> dict[str, list[Vm]]:
    """Return the virtual machines on each of these hosts."""
    vms_by_host: dict[str, list[Vm]] = {name: [] for name in names}
    for vm in vms:
        if vm.host in vms_by_host:
            vms_by_host[vm.host].append(vm)
    return vms_by_host


def _room(host: Values, there: Sequence[Vm] | None) -> FreeCapacity:
    """Return the free capacity of a host; its memory is unknown if its virtual machines were not read."""
    vms = there or []
    free = host_capacity.memory_mb(host) - sum(vm.reserved_mb for vm in vms)
    slots = host_capacity.slots(host, {vm.key: vm.vgpus for vm in vms})
    return FreeCapacity(host["name"], host_capacity.in_service(host), slots, None if there is None else free)


def _configured(
    values: Values, reading: ClusterHosts, rooms: tuple[FreeCapacity, ...], vms: tuple[Vm, ...], hot: bool
) -> EvacuationCluster:
    config = values.get("configurationEx")
    drs = getattr(config, "drsConfig", None)
    mode = str(drs.defaultVmBehavior) if drs and drs.enabled else ""
    options = {entry.key: str(entry.value) for entry in (drs.option if drs else None) or []}
    overridden = {entry.key._moId for entry in getattr(config, "drsVmConfig", None) or [] if _left_by_drs(entry)}
    return EvacuationCluster(
        name=values["name"],
        rooms=rooms,
        vms=tuple(_with_override(vm, overridden) for vm in vms),
        must_run=tuple(must_run(config, reading.names)),
        apart=tuple(apart(config)),
        drs=mode,
        vgpu_by_drs=options.get(VGPU_BY_DRS, "0") not in {"0", ""},
        hot_migrate=hot,
    )


def _left_by_drs(override: ApiObject) -> bool:
    return override.enabled is False or override.behavior in {"manual", "partiallyAutomated"}


def _with_override(vm: Vm, overridden: set[str]) -> Vm:
    return replace(vm, left_by_drs=True) if vm.key in overridden else vm


def must_run(config: object, names: Mapping[str, str]) -> Iterable[VmHostRule]:
    """Yield the rules of a cluster that limit virtual machines to some hosts.

    A rule whose group was deleted limits nothing; one with an empty group of hosts allows none.
    """
    groups = {group.name: group for group in getattr(config, "group", None) or []}
    for rule in getattr(config, "rule", None) or []:
        if not (isinstance(rule, vim.cluster.VmHostRuleInfo) and rule.enabled and rule.mandatory):
            continue
        on, not_on = rule.affineHostGroupName, rule.antiAffineHostGroupName
        if not {rule.vmGroupName, *filter(None, (on, not_on))} <= set(groups):
            continue
        vms = frozenset(vm._moId for vm in groups[rule.vmGroupName].vm or [])
        allowed = _hosts_of(groups[on], names) if on else set(names.values())
        excluded = _hosts_of(groups[not_on], names) if not_on else set()
        yield VmHostRule(str(rule.name), vms, frozenset(allowed - excluded))


def _hosts_of(group: ApiObject, names: Mapping[str, str]) -> set[str]:
    return {names.get(host._moId, "") for host in group.host or []}


def apart(config: object) -> Iterable[AntiAffinityRule]:
    """Yield the rules that keep virtual machines apart, from the configuration of a cluster."""
    for rule in getattr(config, "rule", None) or []:
        if isinstance(rule, vim.cluster.AntiAffinityRuleSpec) and rule.enabled:
            yield AntiAffinityRule(str(rule.name), frozenset(vm._moId for vm in rule.vm or []))
