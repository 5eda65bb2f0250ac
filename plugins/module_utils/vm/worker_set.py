# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""All workers of a call together: where each of them goes, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..capacity import machines
from ..errors import Refused
from ..logic.placement import place
from ..vsphere.faults import translating_faults
from ..vsphere.properties import Values
from ..vsphere.session import Session
from . import clone, customise, gpu, hosts, mark, networks, nics, power, sizing
from .desired import Call, Desired, Gpu, ToCome
from .machine import Machine
from .site import Site

KEYS = (
    *("exists", "host", "power", "cpus", "cores_per_socket", "memory_mb", "memory_reserved", "cpu_reserved_mhz"),
    *("latency_sensitivity", "firmware", "numa", "disks_gb", "gpus", "mmio_gb", "management_nic", "rdma_nic"),
    *("rdma_nics", "guest", "annotation", "mark", "address"),
)


class WorkerSet:
    """The workers of one call in their cluster."""

    def __init__(
        self,
        session: Session,
        call: Call,
        desired_workers: Sequence[Desired],
        tell: Callable[[str, str], None] = lambda _about, _what: None,
    ) -> None:
        self.call, self.desired_workers, self.tell = call, list(desired_workers), tell
        self.site = Site(session, call.cluster)
        self.places = clone.Places(self.site)
        self.placed = place.Placement()
        self.started: dict[str, Machine] = {}
        self.silent: set[str] = set()
        self.cloned: set[str] = set()

    def refresh(self, subjects: Sequence[Any]) -> None:
        """Read all that matters, and find a place for everybody."""
        if not subjects:
            return
        if self.call.wait_for_address:
            self.silent = power.silent(list(self.started.values()), self.call.address_timeout, self.tell)
        names = [desired.name for desired in self.desired_workers]
        self.site.refresh([*names, *(desired["template"] for desired in self.desired_workers if desired["template"])])
        if self.call.state == "present":
            self._place(names)

    def _place(self, names: Sequence[str]) -> None:
        self._check_hosts()
        rules = place.Rules(self.call.one_per_host, self.call.same_numa_node)
        self.placed = place.place(
            self._hosts(names), [self._to_place(desired) for desired in self.desired_workers], rules
        )
        taken = self.site.taken_macs()
        self._macs: dict[str, dict[str, str]] = {}
        for desired in self.desired_workers:
            self._macs[desired.name] = nics.choose_macs(desired.name, (nics.MANAGEMENT, nics.RDMA), taken)
            taken |= set(self._macs[desired.name].values())

    def facts(self, machine: Machine | None) -> dict[str, Any]:
        """A machine in our words; without one, nothing under every key."""
        if machine is None:
            return {**dict.fromkeys(KEYS), "exists": False}
        marked = self.site.mark_of(machine)
        # A clone that was never marked is one that a run was killed over.
        unfinished = not marked and machine.extra.get(mark.BUILDING) == machine.name
        return {
            "exists": True,
            "host": self.site.host_name(machine.host),
            "power": "on" if machine.on else "off",
            **sizing.facts(machine),
            **nics.facts(machine, self.site.networks),
            "gpus": gpu.texts([one.gpu for one in gpu.held(machine)]),
            "mmio_gb": gpu.window_in(machine.extra),
            "guest": customise.facts(machine.extra),
            "mark": {"built": True} if unfinished else marked,
            "address": machine["guest.ipAddress"] or None,
        }

    def base_of(self, desired: Desired) -> Machine:
        """The machine itself, or the one that it is made from."""
        there = self.site.machines.get(desired.name)
        if there:
            return there
        if not desired["template"]:
            said = "it does not exist, and no template is given"
            raise Refused(desired.name, "make it", said, "name a template, or correct its name")
        return self.site.find(desired["template"], "template")

    def place_of(self, desired: Desired) -> str:
        """The host of a worker, or why there is none."""
        if desired.name in self.placed.refusals:
            remedy = "free a place, add hosts, or ask for less; nothing was changed"
            raise Refused(desired.name, "find a host for it", self.placed.refusals[desired.name], remedy)
        return self.placed.where[desired.name]

    def clone_place(self, desired: Desired) -> clone.Place:
        """Where a new worker is put."""
        return self.places.of(desired, self.base_of(desired))

    def host_mhz(self, host: str) -> int:
        """The clock of a host."""
        return int(self._values(host)["summary.hardware.cpuMhz"])

    def macs_for(self, desired: Desired) -> Mapping[str, str]:
        """Addresses for new cards, where the guest must be told them before they exist."""
        return self._macs[desired.name] if desired["guest"] is not None else {}

    def memory_of(self, wanted: place.Wanted) -> int | None:
        """The memory of a GPU of this cluster."""
        return hosts.memory_of(self.site.hosts.values(), wanted)

    def sources_on(self, host: str) -> gpu.Sources:
        """Where the devices of a host are taken from."""
        return gpu.Sources(
            fixed=lambda address: self._fixed(host, address),
            kinds=lambda label: hosts.kinds_of(self.site.hosts.values(), label),
            group=lambda name: self._group(host, name),
        )

    def ties(self, machine: Machine | None) -> str:
        """Why a running machine cannot move; empty where it can."""
        if machine is None:
            return ""
        if tied := [*machines.fixed(machine.values), *machines.plugin_flags(machine.extra)]:
            return ", ".join(tied)
        if machines.vgpus(machine.values) and not self.site.hot_migrate:
            return "its vGPU, as this vCenter does not move them hot"
        return ""

    def _hosts(self, names: Sequence[str]) -> list[place.Host]:
        grouped = any(one.group for desired in self.desired_workers for one in self._gpus(desired))
        return [
            hosts.seen(
                self._as_planned(values),
                self.site.others(key, names),
                self.site.groups(values["name"]) if grouped and self._answers(values) else (),
            )
            for key, values in self.site.hosts.items()
        ]

    def _as_planned(self, values: Values) -> Values:
        """A host as it is, or as it is to be before the workers are built."""
        if not self.call.to_come.gpus:
            return values
        wanted = {
            profile for desired in self.desired_workers for profile in gpu.demand_of(self._gpus(desired), 0, 0).vgpus
        }
        return hosts.prepared(values, sorted(wanted))

    @property
    def networks(self) -> networks.Networks:
        """The networks that there are, and those that come before the workers."""
        return networks.to_come(self.site.networks, self.call.to_come.port_groups)

    def awaited(self, desired: Desired, host: str) -> list[str]:
        """What a worker needs that is yet to come, in words."""
        nics_ = [desired[key] for key in (nics.MANAGEMENT, nics.RDMA) if desired[key]]
        named = {self.networks.named(nic["portgroup"]) for nic in nics_}
        missing = [f"port group {network.name}" for network in named if network.to_come]
        demand = gpu.demand_of(self._gpus(desired), 0, 0)
        gpus = [f"the GPUs of {host}"] if hosts.lacks(self._values(host), demand) else []
        return [*sorted(missing), *gpus] if self.call.to_come != ToCome() else []

    def _to_place(self, desired: Desired) -> place.Worker:
        """A worker as the planner of places sees it; one without a template is refused when it is planned."""
        there = self.site.machines.get(desired.name)
        base = there or self.site.machines.get(desired["template"] or "")
        gpus, allowed = self._gpus(desired), frozenset({desired["host"]}) if desired["host"] else self._allowed
        size = sizing.facts(base) if base else {"memory_mb": 0, "cpus": 0, "memory_reserved": False}
        memory = int(desired["memory_mb"] or size["memory_mb"] or 0)
        reserved = memory if desired["reserve_memory"] or size["memory_reserved"] else 0
        demand = gpu.demand_of(gpus, reserved, int(desired["cpus"] or size["cpus"] or 0))
        if there is None:
            return place.Worker(desired.name, demand, allowed)
        _kept, missing, many = gpu.pair(gpus, gpu.held(there))
        settled = there.on and not missing and not many
        return place.Worker(desired.name, demand, allowed, self.site.host_name(there.host) or "", settled)

    def _gpus(self, desired: Desired) -> tuple[Gpu, ...]:
        """The GPUs that it will have, whether they were asked for now or are there."""
        if desired.gpus is not None:
            return desired.gpus
        base = self.site.machines.get(desired.name) or self.site.machines.get(desired["template"] or "")
        return tuple(one.gpu for one in gpu.held(base)) if base else ()

    @cached_property
    def _allowed(self) -> frozenset[str] | None:
        return frozenset(self.call.hosts) if self.call.hosts else None

    def _check_hosts(self) -> None:
        known = set(self.site.host_names)
        named = {*(self.call.hosts or ()), *(desired["host"] for desired in self.desired_workers if desired["host"])}
        if unknown := sorted(named - known):
            said = f"it has {', '.join(sorted(known))}"
            raise Refused(f"cluster {self.site.name}", f"find {', '.join(unknown)}", said, "correct the names of hosts")

    def _values(self, host: str) -> Values:
        return next(values for values in self.site.hosts.values() if values["name"] == host)

    @staticmethod
    def _answers(values: Mapping[str, Any]) -> bool:
        return bool(values.get("runtime.connectionState") == "connected")

    def _fixed(self, host: str, address: str) -> Any:
        """The backing of a device by its address: a host knows itself by an id that only it tells."""
        offered = self.site.target(host).pciPassthrough or []
        found = next((one for one in offered if one.pciDevice.id == address), None)
        if found is None:
            raise Refused(
                host, f"give away its device {address}", "it does not offer it", "set it to passthrough first"
            )
        return gpu.fixed_backing(found)

    def _group(self, host: str, name: str) -> list[Any]:
        with translating_faults(host, f"read its device group {name}"):
            offered = self.site.target(host).vendorDeviceGroupInfo
            group = next(one for one in offered if one.deviceGroupName == name)
            return [one.device for one in group.componentDeviceInfo]
