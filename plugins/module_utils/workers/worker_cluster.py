"""A cluster with its hosts, networks and virtual machines, read in a few batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..errors import NotFound, Refused
from ..vsphere import custom_fields, inventory, properties
from ..vsphere.escaped_names import plain
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session
from . import candidate_hosts, hardware_limits, machine, networks, nics, worker_identity, worker_mark
from .candidate_hosts import OtherMachines
from .capacity import host_capacity as capacity
from .capacity import machines, profile_info, server_capacity
from .capacity.server_capacity import Capacity
from .hardware_limits import HardwareLimits
from .machine import Machine
from .worker_identity import WorkerIdentities

CLUSTER = ("host", "network", "datastore", "resourcePool", "environmentBrowser")


class WorkerCluster:
    """One cluster; ``refresh`` reads hosts and virtual machines again, networks and vCenter options are read once.

    ``spare`` names hosts of another cluster (all without ``hosts``), which take workers of this one for a time.
    """

    def __init__(self, session: Session, cluster: str, spare: Mapping[str, object] | None = None) -> None:
        self.session, self.name = session, plain(cluster)
        self.ref, self.values = inventory.find_cluster(session, cluster, CLUSTER)
        # The names of the spare hosts by their object id, and the properties of their cluster.
        self.spare: dict[str, str] = {}
        self._elsewhere: properties.Values = {}
        if spare:
            self._add(spare)
        self.hosts: dict[str, properties.Values] = {}
        self.machines: dict[str, Machine] = {}
        self.identities = WorkerIdentities((), ())
        self._limits: dict[tuple[str, str], HardwareLimits] = {}
        self._light: list[properties.Found] = []
        self._running: dict[str, list[Machine]] = {}

    def _add(self, spare: Mapping[str, Any]) -> None:
        """Count the spare hosts as hosts of this cluster, and the networks of their cluster as its networks."""
        ref, self._elsewhere = inventory.find_cluster(self.session, spare["cluster"], CLUSTER)
        tried, name = "use it for spare hosts", plain(spare["cluster"])
        if ref._moId == self.ref._moId:
            raise Refused(f"cluster {name}", tried, "it is the cluster of the workers itself", "name another cluster")
        found = self._elsewhere.get("host") or []
        names = {
            key: str(values["name"]) for key, values in properties.read_many(self.session, found, ("name",)).items()
        }
        chosen = set(spare.get("hosts") or names.values())
        if unknown := sorted(chosen - set(names.values())):
            known = f"its hosts are {', '.join(sorted(names.values())) or 'none'}"
            raise Refused(
                f"cluster {name}", f"find {', '.join(unknown)}", known, "correct the names of the spare hosts"
            )
        self.spare = {key: host for key, host in names.items() if host in chosen}
        both = {key: [*(self.values.get(key) or []), *(self._elsewhere.get(key) or [])] for key in ("host", "network")}
        both["host"] = [host for host in both["host"] if host not in found or host._moId in self.spare]
        self.values = {**self.values, **both}

    def _of(self, host: str) -> properties.Values:
        """Return the properties of the cluster of a host, which is named by its object id."""
        return self._elsewhere if host in self.spare else self.values

    def pool_for(self, one: Machine, host: ApiObject) -> ApiObject | None:
        """Return the resource pool with which a machine moves to a host; None if it keeps its own.

        A host takes only machines of the pools of its cluster:
        https://developer.broadcom.com/xapis/virtual-infrastructure-json-api/latest/data-structures/VirtualMachineRelocateSpec/
        """
        is_near = one.host in self.hosts and (one.host in self.spare) == (host._moId in self.spare)
        return None if is_near else self._of(host._moId)["resourcePool"]

    def refresh(self, names: Iterable[str], known: Mapping[str, object] | None = None) -> None:
        """Read the hosts, the virtual machines with these names, the known ones, and others that run on the hosts."""
        desired = set(names)
        version = self.session.api_version
        more = (*capacity.binding_paths(version), *capacity.class_paths(version))
        paths = (*candidate_hosts.PATHS, capacity.RDMA, *more)
        self.hosts = properties.read_many(self.session, self.values.get("host") or [], paths)
        profile_info.describe(self.session, self.hosts)
        light = list(dict.fromkeys((*machine.LIGHT, *worker_identity.PATHS)))
        definitions = custom_fields.definitions(self.session)
        self._light = properties.find_all(self.session, vim.VirtualMachine, light)
        self.identities = WorkerIdentities(definitions, self._light)
        refs = {**self._refs(desired), **(known or {})}
        read = machine.read(self.session, list(refs.values()))
        self.machines = {name: self._named(name, read[ref._moId]) for name, ref in refs.items() if ref._moId in read}
        self._read_running()

    def find(self, name: str, role: str) -> Machine:
        """Return the virtual machine with that name; refused if it does not exist."""
        if name not in self.machines:
            tried = f"find the {role} {name!r}"
            raise NotFound(self.session.server, tried, "no virtual machine has that name", f"correct the {role}")
        return self.machines[name]

    def _named(self, name: str, vm: Machine) -> Machine:
        is_unfinished = vm.extra.get(worker_mark.BUILDING) == vm.shown
        return replace(vm, worker=name, built=bool((self.mark_of(vm) or {"built": is_unfinished}).get("built")))

    def mark_of(self, vm: Machine) -> dict[str, object] | None:
        return self.identities.mark_of(vm.ref)

    def is_confirmed(self, vm: Machine) -> bool:
        """Return whether a machine has a mark and itself confirms it."""
        mark = self.mark_of(vm)
        return mark is not None and worker_mark.is_confirmed(mark, vm)

    def others(self, host: str, desired: Iterable[str]) -> OtherMachines:
        """Return the running virtual machines and the workers on a host, except those with the given names."""
        names = set(desired)
        here = {ref._moId for ref, values in self._light if properties.id_of(values.get("runtime.host")) == host}
        workers = [
            str(one.mark["name"])
            for one in self.identities.all()
            if one.ref._moId in here and one.mark.get("cluster") == self.name and one.mark["name"] not in names
        ]
        placed = [one for name, one in self.machines.items() if name in names and one.on and one.host == host]
        return OtherMachines(self._running.get(host, []), tuple(sorted(workers)), placed, self._counted(host))

    def _counted(self, key: str) -> Mapping[str, Capacity]:
        """Return the server's counts on a host that can run virtual machines."""
        values = self.hosts[key]
        if not capacity.in_service(values):
            return {}
        offered, classes = capacity.offered(values), capacity.device_classes(values)
        return server_capacity.read(self.session, self.host_named(values["name"]), offered, classes)

    def is_taken(self, name: str) -> bool:
        return any(values["name"] == name for _ref, values in self._light)

    def host_named(self, name: str) -> ApiObject:
        return next(ref for ref in self.values["host"] if self.hosts[ref._moId]["name"] == name)

    def host_name(self, key: str) -> str | None:
        """Return the name of a host by its object id; None for a host of another cluster."""
        return self.hosts[key]["name"] if key in self.hosts else None

    def properties_of(self, host: str) -> properties.Values:
        return next(values for values in self.hosts.values() if values["name"] == host)

    @property
    def host_names(self) -> list[str]:
        return [values["name"] for values in self.hosts.values()]

    @cached_property
    def networks(self) -> networks.Networks:
        return networks.read(self.session, self.name, self.values.get("network") or [])

    @cached_property
    def hot_migrate(self) -> bool:
        """Whether this vCenter moves virtual machines with a vGPU while they run."""
        return machines.hot_migrate(self.session)

    def move_obstacle(self, one: Machine | None) -> str:
        """Return the reason why a running virtual machine cannot move; empty if it can."""
        if one is None:
            return ""
        if tied := [*machines.fixed(one.values, self.device_classes(one)), *machines.plugin_flags(one.extra)]:
            return ", ".join(tied)
        if machines.vgpus(one.values) and not self.hot_migrate:
            return "its vGPU, because this vCenter does not migrate running machines with vGPUs"
        return ""

    def device_classes(self, one: Machine) -> dict[str, bool]:
        """Return the device classes of the host of a virtual machine, and whether their devices move."""
        return capacity.device_classes(self.hosts.get(one.host) or {})

    def target(self, host: str) -> ApiObject:
        """Return the devices that a host offers to virtual machines, as the environment browser reports them."""
        ref = self.host_named(host)
        with translating_faults(host, "ask what it offers to virtual machines"):
            return self._of(ref._moId)["environmentBrowser"].QueryConfigTarget(ref)

    def limits(self, one: Machine, host: str) -> HardwareLimits:
        """Return the limits of the virtual hardware of a machine on a host; hosts of one version share the answer."""
        version = str(one["config.version"] or "")
        key = (version, str(self.properties_of(host).get(nics.VERSION)))
        if version and key not in self._limits:
            ref = self.host_named(host)
            self._limits[key] = hardware_limits.read(self._of(ref._moId)["environmentBrowser"], version, ref)
        return self._limits.get(key, HardwareLimits(version))

    def groups(self, host: str) -> list[str]:
        offered = getattr(self.target(host), "vendorDeviceGroupInfo", None) or []
        return sorted(str(group.deviceGroupName) for group in offered)

    def taken_macs(self) -> set[str]:
        """Return the MAC addresses of all network cards from the latest read."""
        read: list[Machine] = [*self.machines.values(), *(one for some in self._running.values() for one in some)]
        cards = [card for one in read for card in (*one.cards, *machines.class_cards(one.values))]
        return {str(card.macAddress or "").lower() for card in cards}

    def _refs(self, desired: Iterable[str]) -> dict[str, Any]:
        """Return the virtual machines with the given names: workers by their mark, others by the name in vCenter."""
        named, refs = worker_identity.names_of(self._light), dict[str, Any]()
        for name in sorted(desired):
            worker = self.identities.worker(self.name, name)
            same = [worker.ref] if worker else named.get(name, [])
            if len(same) > 1:
                tried, reason = f"find one virtual machine named {name!r}", "several virtual machines have that name"
                raise NotFound(self.session.server, tried, reason, "rename the others")
            if same:
                refs[name] = same[0]
        return refs

    def _read_running(self) -> None:
        """Read the running virtual machines on the hosts that are not read yet."""
        known = {running.ref._moId for running in self.machines.values()}
        refs = [
            ref
            for ref, values in self._light
            if ref._moId not in known
            and values.get("runtime.powerState") == "poweredOn"
            and properties.id_of(values.get("runtime.host")) in self.hosts
        ]
        self._running = {}
        values_by_id: Mapping[str, properties.Values] = properties.read_many(self.session, refs, machine.HOLDING)
        for ref in refs:
            if ref._moId not in values_by_id:
                continue
            running = Machine(self.session, ref, values_by_id[ref._moId])
            self._running.setdefault(running.host, []).append(running)
