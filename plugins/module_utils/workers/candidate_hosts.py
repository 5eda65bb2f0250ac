"""The hosts of a cluster as input of the placement planner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..vsphere.properties import Values
from .capacity import host_capacity as capacity
from .capacity import machines, server_capacity
from .capacity.server_capacity import Capacity
from .machine import Machine
from .nics import VERSION
from .placement import mmio
from .placement.gpu_slots import parse
from .placement.place import Demand, Device, DeviceRequest, HostResources

PATHS = (*capacity.PATHS, *capacity.DEVICE_PATHS, "summary.hardware.numCpuThreads", "summary.hardware.cpuMhz", VERSION)
MOST_UNCOUNTED = 16
# The key, next to the properties of a host, of the profiles that the host offers after its GPUs are prepared.
TO_COME = "to come"


@dataclass(frozen=True)
class OtherMachines:
    """The virtual machines on a host that the placement does not move, and the names of the workers among them.

    ``placed`` are the running machines that the placement may move, ``counted`` are the server's counts.
    """

    running: Sequence[Machine] = ()
    workers: tuple[str, ...] = ()
    placed: Sequence[Machine] = ()
    counted: Mapping[str, Capacity] = field(default_factory=dict)


def host_for_planner(host: Values, others: OtherMachines, groups: Iterable[str] = ()) -> HostResources:
    """Return a host for the placement planner, without the resources that other virtual machines use."""
    nodes, coming = capacity.numa_nodes(host), host.get(TO_COME, ())
    shared = [gpu.pciId for gpu in capacity.shared(host, coming)]
    vgpus = _vgpus(others.running)
    withheld = _withheld(host, others)
    return HostResources(
        name=host["name"],
        in_service=capacity.in_service(host),
        slots=capacity.slots(host, vgpus, coming).occupy(profile for _holder, profile in withheld),
        devices=(*_devices(host, _holders(others.running)), *_class_devices(host, others)),
        free_mb=capacity.memory_mb(host) - sum(machines.reserved_mb(machine.values) for machine in others.running),
        threads=int(host.get("summary.hardware.numCpuThreads") or 0),
        nic_nodes=capacity.rdma_nodes(host),
        nodes=tuple(sorted((address, nodes[address]) for address in shared if address in nodes)),
        groups=tuple(groups),
        workers=others.workers,
        holders=(
            *sorted((machine.name, profile) for machine in others.running for profile in vgpus[machine.ref._moId]),
            *withheld,
        ),
    )


def _vgpus(running: Iterable[Machine]) -> dict[str, tuple[str, ...]]:
    return {machine.ref._moId: machines.vgpus(machine.values) for machine in running}


def _withheld(host: Values, others: OtherMachines) -> list[tuple[str, str]]:
    """Return the slots that no machine uses but the server withholds; none for a host that is yet to be prepared."""
    if TO_COME in host or not others.counted:
        return []
    there = capacity.slots(host, _vgpus([*others.running, *others.placed]))
    return server_capacity.withheld(there, others.counted)


def prepared_host(host: Values, profiles: Iterable[str]) -> Values:
    """Return the properties of a host as if its GPUs were prepared: the profiles that fit its GPUs are added."""
    names = [str(one.deviceName).lower().replace(" ", "") for one in host.get("config.graphicsInfo") or []]
    parsed = {name: profile for name in profiles if (profile := parse(name))}
    fitting = [name for name, one in parsed.items() if any(one.model in name_ for name_ in names)]
    return {**host, TO_COME: fitting}


def lacks_gpus(host: Values, demand: Demand) -> bool:
    """Return whether the GPUs of a host must be prepared before it can offer the GPUs of a demand."""
    offered = capacity.offered(host) if capacity.shared(host) else set[str]()
    return not set(demand.vgpus) <= offered or bool(
        any(not request.device_class for request in demand.devices) and not capacity.whole_gpus(host, {})
    )


def gpu_memory_gb(hosts: Iterable[Values], desired: DeviceRequest) -> int | None:
    """Return the memory of a requested GPU in gigabytes; None if it is unknown."""
    for host in hosts:
        for device in capacity.whole_gpus(host, {}, active=False):
            if desired.matches(device):
                size = capacity.gpu_memory_gb(host, device.address)
                return math.ceil(size) if size else None
    return mmio.memory_gb(desired.kind)


def kinds_of(hosts: Iterable[Values], label: str) -> list[str]:
    """Return the GPUs with a label, as vendor:device IDs."""
    kinds = [device.kind for host in hosts for device in _devices(host, {}) if device.label == label]
    return list(dict.fromkeys(kinds))


def _devices(host: Values, holders: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the GPUs in passthrough, and after prepared_host also those that will be."""
    return capacity.whole_gpus(host, holders, active=TO_COME not in host)


def _class_devices(host: Values, others: OtherMachines) -> Iterator[Device]:
    """Yield the devices of each device class of a host.

    Before vSphere 9.0, no API counts them: the server refuses to start a worker if none is left.
    """
    users = [(one.name, name) for one in others.running for name in machines.device_classes(one.values)]
    placed = [name for one in others.placed for name in machines.device_classes(one.values)]
    for name in capacity.device_classes(host):
        holders = [vm for vm, used in users if used == name]
        counted = others.counted.get(name)
        if counted:
            unseen = counted.used - len(holders) - placed.count(name)
            holders += [server_capacity.UNSEEN] * unseen + [server_capacity.RESERVATION] * counted.reserved
        free = counted.total - len(holders) if counted else MOST_UNCOUNTED
        for number, holder in enumerate([*holders, *[""] * free], start=1):
            yield Device(f"{name} {number}", "", device_class=name, holder=holder)


def _holders(running: Iterable[Machine]) -> dict[str, str]:
    """Return the names of the virtual machines that have a PCI device, by its address."""
    return {
        device.address: machine.name
        for machine in running
        for device in machines.passthrough_devices(machine.values)
        if device.address
    }
