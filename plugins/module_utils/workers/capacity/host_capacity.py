# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What a host offers to virtual machines, from the properties that were read of it: service, memory, GPUs, NUMA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..placement import mmio
from ..placement.gpu_slots import Gpu, Slots
from ..placement.place import Device
from . import pci_ids

SERVICE_PATHS = ("runtime.connectionState", "runtime.inMaintenanceMode", "runtime.inQuarantineMode")
# What the functions about service, memory and virtual GPUs look at.
PATHS = (
    "name",
    *SERVICE_PATHS,
    "summary.hardware.memorySize",
    "config.graphicsInfo",
    "config.sharedPassthruGpuTypes",
)
# What the functions about devices that are given away as a whole look at besides.
DEVICE_PATHS = ("config.pciPassthruInfo", "config.network.pnic", "hardware.pciDevice", "hardware.numaInfo")
RDMA = "config.network.rdmaDevice"
SHARED_DIRECT, MIXED_SIZE = "sharedDirect", "mixedSize"
CONNECTED, MAINTENANCE, QUARANTINE = "connected", "maintenance", "quarantine"


def out_of_service(host: Mapping[str, Any]) -> str:
    """Why a host cannot take virtual machines: its connection state, maintenance or quarantine; empty where it can."""
    state = str(host.get("runtime.connectionState"))
    if state != CONNECTED:
        return state
    if host.get("runtime.inMaintenanceMode"):
        return MAINTENANCE
    return QUARANTINE if host.get("runtime.inQuarantineMode") else ""


def in_service(host: Mapping[str, Any]) -> bool:
    """Whether a host can take virtual machines."""
    return not out_of_service(host)


def memory_mb(host: Mapping[str, Any]) -> int:
    """The memory of a host; 0 for one that vCenter never reached."""
    return int(host.get("summary.hardware.memorySize") or 0) // 2**20


def offered(host: Mapping[str, Any]) -> set[str]:
    """The vGPU profiles that a host offers."""
    return set(host.get("config.sharedPassthruGpuTypes") or [])


def graphics(host: Mapping[str, Any]) -> dict[str, Any]:
    """The GPUs that the host's graphics driver knows, by PCI address."""
    return {one.pciId: one for one in host.get("config.graphicsInfo") or []}


def shared(host: Mapping[str, Any], coming: Sequence[str] = ()) -> list[Any]:
    """The GPUs that are divided into virtual GPUs now; with profiles to come, all that the driver knows."""
    return [one for one in graphics(host).values() if one.graphicsType == SHARED_DIRECT or coming]


def gigabytes(info: Any) -> float:
    """The memory that a GPU reports; 0 where it reports none."""
    return float((info.memorySizeInKB or 0) / 2**20) if info else 0.0


def users(host: Mapping[str, Any]) -> dict[str, list[str]]:
    """The object ids of the virtual machines on each GPU, by PCI address."""
    return {address: [str(vm._moId) for vm in info.vm or []] for address, info in graphics(host).items()}


def slots(host: Mapping[str, Any], vgpus: Mapping[str, Sequence[str]], coming: Sequence[str] = ()) -> Slots:
    """The shared GPUs of a host with the virtual GPUs on them.

    ``vgpus`` are the profiles by virtual machine's id, ``coming`` those that the host offers once it is prepared.
    """
    waiting = {vm: list(profiles) for vm, profiles in vgpus.items()}
    gpus = tuple(_gpu(one, waiting) for one in shared(host, coming))
    found = Slots(gpus, tuple(sorted({*offered(host), *coming})))
    # Where the server does not tell the GPU of a virtual machine, it sits where it fits.
    for profile in [profile for profiles in waiting.values() for profile in profiles]:
        found = found.take(profile) or found
    return found


def _gpu(info: Any, waiting: dict[str, list[str]]) -> Gpu:
    here = [waiting[vm._moId].pop(0) for vm in info.vm or [] if waiting.get(vm._moId)]
    mixed = getattr(info, "vgpuMode", None) == MIXED_SIZE
    return Gpu(info.pciId, info.deviceName, gigabytes(info), tuple(here), mixed)


def whole_gpus(host: Mapping[str, Any], holders: Mapping[str, str], *, active: bool = True) -> tuple[Device, ...]:
    """The GPUs that the host gives away as a whole; ``holders`` are the virtual machines that have one, by address.

    Without ``active`` also those that it gives away after its next boot, or that are not set to passthrough yet.
    """
    passed = {one.id: one for one in host.get("config.pciPassthruInfo") or [] if one.passthruActive or not active}
    nodes, known = numa_nodes(host), graphics(host)
    return tuple(
        Device(
            address=one.id,
            kind=pci_ids.kind_of(one),
            label=str(getattr(passed[one.id], "hardwareLabel", None) or ""),
            node=nodes.get(one.id),
            holder=holders.get(one.id.lower(), ""),
        )
        for one in host.get("hardware.pciDevice") or []
        if one.id in passed and pci_ids.is_gpu(one, known)
    )


def gpu_memory_gb(host: Mapping[str, Any], address: str) -> float | None:
    """The memory of a GPU: what it reports, else what its name or its kind says; None where nothing tells."""
    device = next((one for one in host.get("hardware.pciDevice") or [] if one.id == address), None)
    told = mmio.memory_gb(pci_ids.kind_of(device), str(device.deviceName)) if device else None
    return gigabytes(graphics(host).get(address)) or told


def numa_nodes(host: Mapping[str, Any]) -> dict[str, int]:
    """The NUMA node of each PCI device by its address, where the host tells."""
    info = host.get("hardware.numaInfo")
    found = (info.numaNode if info else None) or []
    return {address: index for index, node in enumerate(found) for address in node.pciId or []}


def rdma_node(host: Mapping[str, Any]) -> int | None:
    """The NUMA node of the RDMA NIC; None where the host does not tell."""
    nodes = numa_nodes(host)
    cards = {one.key: one.pci for one in host.get("config.network.pnic") or []}
    uplinks = (getattr(device.backing, "pairedUplink", None) for device in host.get(RDMA) or [])
    return next((nodes.get(cards[uplink]) for uplink in uplinks if uplink in cards), None)
