# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The hosts of a cluster as input of the placement planner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..vsphere.properties import Values
from .capacity import host_capacity as capacity
from .capacity import machines
from .machine import Machine
from .placement import mmio
from .placement.gpu_slots import parse
from .placement.place import Demand, Device, DeviceRequest, Host

PATHS = (*capacity.PATHS, *capacity.DEVICE_PATHS, "summary.hardware.numCpuThreads", "summary.hardware.cpuMhz")
RDMA_SINCE = (7, 0)
# The key of the profiles that a host will offer once its GPUs are prepared, beside its properties.
TO_COME = "to come"


@dataclass(frozen=True)
class OtherMachines:
    """The virtual machines on a host that the placement does not move, and the names of the workers among them."""

    running: Sequence[Machine] = ()
    workers: tuple[str, ...] = ()


def host_for_planner(host: Values, others: OtherMachines, groups: Iterable[str] = ()) -> Host:
    """A host for the placement planner, less what other virtual machines hold."""
    nodes, coming = capacity.numa_nodes(host), host.get(TO_COME, ())
    shared = [gpu.pciId for gpu in capacity.shared(host, coming)]
    vgpus = {one.ref._moId: machines.vgpus(one.values) for one in others.running}
    return Host(
        name=host["name"],
        in_service=capacity.in_service(host),
        slots=capacity.slots(host, vgpus, coming),
        devices=_devices(host, _holders(others.running)),
        free_mb=capacity.memory_mb(host) - sum(machines.reserved_mb(one.values) for one in others.running),
        threads=int(host.get("summary.hardware.numCpuThreads") or 0),
        nic_node=capacity.rdma_node(host),
        nodes=tuple(sorted((address, nodes[address]) for address in shared if address in nodes)),
        groups=tuple(groups),
        workers=others.workers,
        holders=tuple(sorted((one.name, profile) for one in others.running for profile in vgpus[one.ref._moId])),
    )


def prepared_host(host: Values, profiles: Iterable[str]) -> Values:
    """The properties of a host as if its GPUs were prepared: it offers those of the profiles that fit its GPUs."""
    names = [str(one.deviceName).lower().replace(" ", "") for one in host.get("config.graphicsInfo") or []]
    parsed = {name: found for name in profiles if (found := parse(name))}
    fitting = [name for name, one in parsed.items() if any(one.model in name_ for name_ in names)]
    return {**host, TO_COME: fitting}


def lacks_gpus(host: Values, demand: Demand) -> bool:
    """Whether a host lacks GPUs of a demand until its GPUs are prepared."""
    offered = capacity.offered(host) if capacity.shared(host) else set[str]()
    return not set(demand.vgpus) <= offered or bool(demand.devices and not capacity.whole_gpus(host, {}))


def gpu_memory_gb(hosts: Iterable[Values], wanted: DeviceRequest) -> int | None:
    """The memory of a wanted GPU in gigabytes; None where it is unknown."""
    for host in hosts:
        for device in capacity.whole_gpus(host, {}, active=False):
            if wanted.matches(device):
                size = capacity.gpu_memory_gb(host, device.address)
                return math.ceil(size) if size else None
    return mmio.memory_gb(wanted.kind)


def kinds_of(hosts: Iterable[Values], label: str) -> list[str]:
    """The GPUs, as vendor:device, that carry a label."""
    found = [device.kind for host in hosts for device in _devices(host, {}) if device.label == label]
    return list(dict.fromkeys(found))


def _devices(host: Values, holders: Mapping[str, str]) -> tuple[Device, ...]:
    """The GPUs that the host gives away as a whole, or will once it is prepared."""
    return capacity.whole_gpus(host, holders, active=TO_COME not in host)


def _holders(running: Iterable[Machine]) -> dict[str, str]:
    """The names of the virtual machines that have a PCI device, by its address."""
    return {
        device.address: one.name
        for one in running
        for device in machines.passthrough_devices(one.values)
        if device.address
    }
