# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The hosts of a cluster as the planner of places sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..logic.placement import mmio
from ..logic.placement.gpu_slots import Gpu as SlotGpu
from ..logic.placement.gpu_slots import Slots, parse
from ..logic.placement.place import Demand, Device, Host, Wanted
from ..vsphere.properties import Values
from ..vsphere.sdk import vim
from .gpu import NVIDIA, held
from .machine import Machine

PATHS = (
    "name",
    "runtime.connectionState",
    "runtime.inMaintenanceMode",
    "runtime.inQuarantineMode",
    "summary.hardware.memorySize",
    "summary.hardware.numCpuThreads",
    "summary.hardware.cpuMhz",
    "config.graphicsInfo",
    "config.sharedPassthruGpuTypes",
    "config.pciPassthruInfo",
    "config.network.pnic",
    "hardware.pciDevice",
    "hardware.numaInfo",
)
RDMA = "config.network.rdmaDevice"
RDMA_SINCE = (7, 0)
SHARED_DIRECT = "sharedDirect"
# Put beside what was read of a host: the profiles that it is to offer when its GPUs are prepared.
TO_COME = "to come"


@dataclass(frozen=True)
class Others:
    """The virtual machines on a host that are not to be placed, and the workers among them."""

    running: Sequence[Machine] = ()
    workers: tuple[str, ...] = ()


def seen(host: Values, others: Others, groups: Iterable[str] = ()) -> Host:
    """A host with what the others leave."""
    nodes = _nodes(host.get("hardware.numaInfo"))
    reserved = sum(int(one["config.memoryAllocation.reservation"] or 0) for one in others.running)
    return Host(
        name=host["name"],
        in_service=_in_service(host),
        slots=_slots(host, others.running),
        devices=_devices(host, nodes, _holders(others.running)),
        free_mb=int(host["summary.hardware.memorySize"]) // 2**20 - reserved,
        threads=int(host["summary.hardware.numCpuThreads"]),
        nic_node=_rdma_node(host, nodes),
        nodes=tuple(sorted((gpu.pciId, nodes[gpu.pciId]) for gpu in _shared(host) if gpu.pciId in nodes)),
        groups=tuple(groups),
        workers=others.workers,
        holders=tuple(
            sorted((one.name, str(gpu.gpu)) for one in others.running for gpu in held(one) if gpu.gpu.profile)
        ),
    )


def prepared(host: Values, profiles: Iterable[str]) -> Values:
    """A host as it is to be when its GPUs are prepared, to plan with: it offers those of the profiles that fit them."""
    names = [str(one.deviceName).lower().replace(" ", "") for one in host.get("config.graphicsInfo") or []]
    parsed = {name: found for name in profiles if (found := parse(name))}
    fitting = [name for name, one in parsed.items() if any(one.model in name_ for name_ in names)]
    return {**host, TO_COME: fitting}


def lacks(host: Values, demand: Demand) -> bool:
    """Whether a host offers less than is wanted, as long as its GPUs are not prepared."""
    offered = set(host.get("config.sharedPassthruGpuTypes") or []) if _shared(host) else set[str]()
    return not set(demand.vgpus) <= offered or bool(demand.devices and not _devices(host, {}, {}))


def memory_of(hosts: Iterable[Values], wanted: Wanted) -> int | None:
    """The memory of the GPU that is wanted, in gigabytes."""
    for host in hosts:
        sizes = {gpu.pciId: int(gpu.memorySizeInKB or 0) for gpu in host.get("config.graphicsInfo") or []}
        names = {one.id: str(one.deviceName) for one in host.get("hardware.pciDevice") or []}
        for device in _devices(host, {}, {}, active=False):
            if wanted.takes(device):
                size = -(-sizes.get(device.address, 0) // 2**20)
                return size or mmio.memory_gb(device.kind, names[device.address])
    return mmio.memory_gb(wanted.kind)


def kinds_of(hosts: Iterable[Values], label: str) -> list[str]:
    """The GPUs, as vendor:device, that carry a label."""
    found = [device.kind for host in hosts for device in _devices(host, {}, {}) if device.label == label]
    return list(dict.fromkeys(found))


def _in_service(host: Values) -> bool:
    out = host.get("runtime.inMaintenanceMode") or host.get("runtime.inQuarantineMode")
    return bool(host.get("runtime.connectionState") == "connected" and not out)


def _shared(host: Values) -> list[Any]:
    known = host.get("config.graphicsInfo") or []
    return [one for one in known if one.graphicsType == SHARED_DIRECT or host.get(TO_COME)]


def _slots(host: Values, running: Sequence[Machine]) -> Slots:
    """The shared GPUs with the virtual GPUs of the others on them."""
    waiting = {one.ref._moId: [str(gpu.gpu) for gpu in held(one) if gpu.gpu.profile] for one in running}
    gpus = tuple(_slot_gpu(one, waiting) for one in _shared(host))
    offered = {*(host.get("config.sharedPassthruGpuTypes") or []), *host.get(TO_COME, ())}
    slots = Slots(gpus, tuple(sorted(offered)))
    # Where the server does not tell the GPU of a virtual machine, it sits where it fits.
    for profile in [profile for profiles in waiting.values() for profile in profiles]:
        slots = slots.take(profile) or slots
    return slots


def _slot_gpu(info: Any, waiting: dict[str, list[str]]) -> SlotGpu:
    here = [waiting[vm._moId].pop(0) for vm in info.vm or [] if waiting.get(vm._moId)]
    mixed = getattr(info, "vgpuMode", None) == "mixedSize"
    return SlotGpu(info.pciId, info.deviceName, info.memorySizeInKB / 2**20, tuple(here), mixed)


def _devices(
    host: Values, nodes: Mapping[str, int], holders: Mapping[str, str], *, active: bool = True
) -> tuple[Device, ...]:
    """The NVIDIA devices that the host gives away as a whole."""
    every = not active or TO_COME in host
    passed = {one.id: one for one in host.get("config.pciPassthruInfo") or [] if one.passthruActive or every}
    return tuple(
        Device(
            address=one.id,
            kind=f"{one.vendorId & 0xFFFF:04x}:{one.deviceId & 0xFFFF:04x}",
            label=str(getattr(passed[one.id], "hardwareLabel", None) or ""),
            node=nodes.get(one.id),
            holder=holders.get(one.id, ""),
        )
        for one in host.get("hardware.pciDevice") or []
        if one.id in passed and one.vendorId & 0xFFFF == NVIDIA
    )


def _holders(running: Iterable[Machine]) -> dict[str, str]:
    """Who has which PCI device."""
    holders: dict[str, str] = {}
    for one in running:
        for device in one.devices(vim.vm.device.VirtualPCIPassthrough):
            address = getattr(device.backing, "assignedId", None) or getattr(device.backing, "id", None)
            if address:
                holders[str(address)] = one.name
    return holders


def _nodes(info: Any) -> dict[str, int]:
    """The NUMA node of each PCI device, where the host tells."""
    found = (info.numaNode if info else None) or []
    return {pci: index for index, node in enumerate(found) for pci in node.pciId or []}


def _rdma_node(host: Values, nodes: Mapping[str, int]) -> int | None:
    """The NUMA node of the RDMA NIC."""
    cards = {one.key: one.pci for one in host.get("config.network.pnic") or []}
    uplinks = (getattr(device.backing, "pairedUplink", None) for device in host.get(RDMA) or [])
    return next((nodes.get(cards[uplink]) for uplink in uplinks if uplink in cards), None)
