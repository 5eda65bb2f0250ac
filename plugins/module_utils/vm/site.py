# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The cluster of a call with its hosts, networks and virtual machines, read in a few batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..capacity import hosts as capacity
from ..capacity import machines
from ..errors import NotFound
from ..vsphere import custom_fields, fleet, properties
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import vim
from ..vsphere.session import Session
from . import hosts, machine, mark, networks
from .hosts import Others
from .machine import Machine

CLUSTER = ("host", "network", "datastore", "resourcePool", "environmentBrowser")


class Site:
    """One cluster; ``refresh`` reads hosts and virtual machines anew, networks and options are read once."""

    def __init__(self, session: Session, cluster: str) -> None:
        self.session, self.name = session, cluster
        self.ref, self.values = fleet.find_cluster(session, cluster, CLUSTER)
        self.hosts: dict[str, properties.Values] = {}
        self.machines: dict[str, Machine] = {}
        self.definitions: Sequence[Any] = ()
        self._light: list[properties.Found] = []
        self._running: dict[str, list[Machine]] = {}

    def refresh(self, names: Iterable[str]) -> None:
        """Read the hosts, the virtual machines of these names, and the others that run on the hosts."""
        wanted = set(names)
        paths = (*hosts.PATHS, capacity.RDMA) if self.session.api_version >= hosts.RDMA_SINCE else hosts.PATHS
        self.hosts = properties.read_many(self.session, self.values.get("host") or [], paths)
        self.definitions = custom_fields.definitions(self.session)
        light = (*machine.LIGHT, "customValue")
        self._light = properties.find_all(self.session, vim.VirtualMachine, light)
        refs = [ref for ref, values in self._light if values["name"] in wanted]
        self.machines = {}
        for one in machine.read(self.session, refs).values():
            self.machines[self._unique(one.name)] = one
        self._read_running(wanted)

    def find(self, name: str, role: str) -> Machine:
        """The virtual machine of that name; refused where it does not exist."""
        if name not in self.machines:
            tried = f"find the {role} {name!r}"
            raise NotFound(self.session.server, tried, "no virtual machine has that name", f"correct the {role}")
        return self.machines[name]

    def mark_of(self, one: Machine) -> dict[str, Any] | None:
        """The mark of a machine."""
        return mark.read(one.name, self.definitions, one["customValue"])

    def others(self, host: str, wanted: Iterable[str]) -> Others:
        """The running virtual machines and the workers on a host, less those of the given names."""
        names = set(wanted)
        workers = [
            str(values["name"])
            for _ref, values in self._light
            if properties.id_of(values.get("runtime.host")) == host
            and values["name"] not in names
            and (mark.read(values["name"], self.definitions, values.get("customValue")) or {}).get("cluster")
            == self.name
        ]
        return Others(self._running.get(host, []), tuple(sorted(workers)))

    def host_named(self, name: str) -> Any:
        """The reference of a host."""
        return next(ref for ref in self.values["host"] if self.hosts[ref._moId]["name"] == name)

    def host_name(self, key: str) -> str | None:
        """The name of a host by its object id; None for a host of another cluster."""
        return self.hosts[key]["name"] if key in self.hosts else None

    def properties_of(self, host: str) -> properties.Values:
        """The properties of a host by its name."""
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

    def ties(self, one: Machine | None) -> str:
        """The reason why a running virtual machine cannot move; empty where it can."""
        if one is None:
            return ""
        if tied := [*machines.fixed(one.values), *machines.plugin_flags(one.extra)]:
            return ", ".join(tied)
        if machines.vgpus(one.values) and not self.hot_migrate:
            return "its vGPU, as this vCenter does not move them hot"
        return ""

    def target(self, host: str) -> Any:
        """The devices that a host offers to virtual machines, as the environment browser reports them."""
        with translating_faults(host, "ask what it offers to virtual machines"):
            return self.values["environmentBrowser"].QueryConfigTarget(self.host_named(host))

    def groups(self, host: str) -> list[str]:
        """The device groups that a host offers."""
        offered = getattr(self.target(host), "vendorDeviceGroupInfo", None) or []
        return sorted(str(one.deviceGroupName) for one in offered)

    def taken_macs(self) -> set[str]:
        """The addresses of the network cards that were read."""
        read: list[Machine] = [*self.machines.values(), *(one for some in self._running.values() for one in some)]
        return {str(card.macAddress or "").lower() for one in read for card in one.cards}

    def _unique(self, name: str) -> str:
        if name in self.machines:
            said = "several virtual machines have that name"
            raise NotFound(self.session.server, f"find one virtual machine named {name!r}", said, "rename the others")
        return name

    def _read_running(self, wanted: set[str]) -> None:
        """Read the running virtual machines on the hosts, less those of the given names."""
        refs = [
            ref
            for ref, values in self._light
            if values["name"] not in wanted
            and values.get("runtime.powerState") == "poweredOn"
            and properties.id_of(values.get("runtime.host")) in self.hosts
        ]
        self._running = {}
        found: Mapping[str, properties.Values] = properties.read_many(self.session, refs, machine.HOLDING)
        for ref in refs:
            if ref._moId not in found:
                continue
            one = Machine(self.session, ref, found[ref._moId])
            self._running.setdefault(one.host, []).append(one)
