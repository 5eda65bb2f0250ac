"""The resources that a host offers to virtual machines, from its properties: service, memory, GPUs, NUMA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..placement import mmio
from ..placement.gpu_slots import PhysicalGpu, Slots
from ..placement.place import Device
from . import pci_ids

SERVICE_PATHS = ("runtime.connectionState", "runtime.inMaintenanceMode", "runtime.inQuarantineMode")
# The properties for the functions about service, memory and vGPUs.
PATHS = ("name", *SERVICE_PATHS, "summary.hardware.memorySize", "config.graphicsInfo", "config.sharedPassthruGpuTypes")
# Further properties for the functions about devices in passthrough.
DEVICE_PATHS = ("config.pciPassthruInfo", "config.network.pnic", "hardware.pciDevice", "hardware.numaInfo")
RDMA = "config.network.rdmaDevice"
# The classes of devices with Enhanced DirectPath I/O.
CLASSES, CLASSES_SINCE = "hardware.dvxClasses", (8, 0, 0, 1)
BINDING, BINDING_SINCE = "config.assignableHardwareBinding", (9, 1)
SHARED_DIRECT, MIXED_SIZE = "sharedDirect", "mixedSize"
# The vGPU mode of a GPU in MIG mode; hosts before 8.0.3 report no mode.
_IN_MIG = "multiInstanceGpu"
# The key of the profiles that the host describes, next to its properties.
DESCRIBED = "described profiles"
CONNECTED, MAINTENANCE, QUARANTINE = "connected", "maintenance", "quarantine"


def out_of_service(host: Mapping[str, object]) -> str:
    """Return why a host cannot run virtual machines: connection state, maintenance or quarantine; empty if it can."""
    state = str(host.get("runtime.connectionState"))
    if state != CONNECTED:
        return state
    if host.get("runtime.inMaintenanceMode"):
        return MAINTENANCE
    return QUARANTINE if host.get("runtime.inQuarantineMode") else ""


def in_service(host: Mapping[str, object]) -> bool:
    """Return whether a host can run virtual machines."""
    return not out_of_service(host)


def memory_mb(host: Mapping[str, Any]) -> int:
    """Return the memory of a host; 0 if vCenter has never been connected to it."""
    return int(host.get("summary.hardware.memorySize") or 0) // 2**20


def offered(host: Mapping[str, Any]) -> set[str]:
    return set(host.get("config.sharedPassthruGpuTypes") or [])


def graphics(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the GPUs that the host's graphics driver reports, by PCI address."""
    return {info.pciId: info for info in host.get("config.graphicsInfo") or []}


def shared(host: Mapping[str, object], coming: Sequence[str] = ()) -> list[Any]:
    """Return the GPUs in shared direct mode or, with ``coming`` profiles, all that the driver reports."""
    return [info for info in graphics(host).values() if info.graphicsType == SHARED_DIRECT or coming]


def gigabytes(info: Any) -> float:
    """Return the memory that a GPU reports; 0 if it reports none."""
    return float((info.memorySizeInKB or 0) / 2**20) if info else 0.0


def users(host: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the object ids of the virtual machines on each GPU, by PCI address.

    From 9.1 on, the bindings of the host name the GPU of each device. Virtual machines without such a binding come from
    the graphics driver's list for the GPU.
    """
    known = graphics(host)
    addresses = {address.lower() for address in known}
    bindings = [(_pci_id(one), str(one.vm._moId)) for one in host.get(BINDING) or []]
    bound = [(address, vm) for address, vm in bindings if address in addresses]
    exact = {vm for _address, vm in bound}
    return {
        address: [
            *(vm for bound_to, vm in bound if bound_to == address.lower()),
            *(str(vm._moId) for vm in info.vm or [] if vm._moId not in exact),
        ]
        for address, info in known.items()
    }


def binding_paths(api_version: tuple[int, ...]) -> tuple[str, ...]:
    """Return the property that names the GPU of each device of a virtual machine, if this version has it."""
    return (BINDING,) if api_version >= BINDING_SINCE else ()


def _pci_id(binding: object) -> str:
    return str(getattr(binding, "pciId", None) or "").lower()  # an older pyVmomi does not have it


def slots(host: Mapping[str, Any], vgpus: Mapping[str, Sequence[str]], coming: Sequence[str] = ()) -> Slots:
    """Return the shared GPUs of a host and the vGPUs on them.

    ``vgpus`` are the profiles by virtual machine ID, ``coming`` are those that the host offers after preparation.
    """
    waiting = {vm: list(profiles) for vm, profiles in vgpus.items()}
    vms, here = users(host), shared(host, coming)
    in_mig = [info for info in here if getattr(info, "vgpuMode", None) == _IN_MIG]
    # Without a GPU that is known to be in MIG mode, the offered profiles decide.
    gpus = tuple(_gpu(info, vms[info.pciId], waiting, (info in in_mig) if in_mig else None) for info in here)
    occupied = Slots(gpus, tuple(sorted({*offered(host), *coming})), tuple(host.get(DESCRIBED, ())))
    # If the server does not report the GPU of a virtual machine, the first GPU with room is assumed.
    for profile in [profile for profiles in waiting.values() for profile in profiles]:
        occupied = occupied.take(profile) or occupied
    return occupied


def _gpu(info: Any, vms: Sequence[str], waiting: dict[str, list[str]], mig: bool | None) -> PhysicalGpu:
    here = [waiting[vm].pop(0) for vm in vms if waiting.get(vm)]
    mixed = getattr(info, "vgpuMode", None) == MIXED_SIZE
    return PhysicalGpu(info.pciId, info.deviceName, gigabytes(info), tuple(here), mixed, mig)


def whole_gpus(host: Mapping[str, Any], holders: Mapping[str, str], *, active: bool = True) -> tuple[Device, ...]:
    """Return the GPUs in passthrough; ``holders`` are the virtual machines that use them, by address.

    If ``active`` is false, also return GPUs whose passthrough starts at the next boot or is not set yet.
    """
    passed = {
        device.id: device for device in host.get("config.pciPassthruInfo") or [] if device.passthruActive or not active
    }
    nodes, known = numa_nodes(host), graphics(host)
    return tuple(
        Device(
            address=device.id,
            kind=pci_ids.kind_of(device),
            label=str(getattr(passed[device.id], "hardwareLabel", None) or ""),
            node=nodes.get(device.id),
            holder=holders.get(device.id.lower(), ""),
        )
        for device in host.get("hardware.pciDevice") or []
        if device.id in passed and pci_ids.is_gpu(device, known)
    )


def gpu_memory_gb(host: Mapping[str, Any], address: str) -> float | None:
    """Return the memory of a GPU: as reported, or from its name or model; None if unknown."""
    device = next((candidate for candidate in host.get("hardware.pciDevice") or [] if candidate.id == address), None)
    nominal = mmio.memory_gb(pci_ids.kind_of(device), str(device.deviceName)) if device else None
    return gigabytes(graphics(host).get(address)) or nominal


def class_paths(api_version: tuple[int, ...]) -> tuple[str, ...]:
    """Return the property with the device classes of a host, if this version has it."""
    return (CLASSES,) if api_version >= CLASSES_SINCE else ()


def device_classes(host: Mapping[str, Any]) -> dict[str, bool]:
    """Return the device classes of a host, and whether virtual machines with their devices can move."""
    return {str(one.deviceClass): bool(one.checkpointSupported) for one in host.get(CLASSES) or []}


def are_cards(host: Mapping[str, Any], device_class: str) -> bool:
    """Return whether the devices of a class are SR-IOV network cards, as the host reports."""
    return any(one.deviceClass == device_class and one.sriovNic for one in host.get(CLASSES) or [])


def numa_nodes(host: Mapping[str, Any]) -> dict[str, int]:
    """Return the NUMA node of each PCI device by its address, if the host reports it."""
    info = host.get("hardware.numaInfo")
    numa_nodes_ = (info.numaNode if info else None) or []
    return {address: index for index, node in enumerate(numa_nodes_) for address in node.pciId or []}


def rdma_nodes(host: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the NUMA nodes of the RDMA NICs, each once and in their order; empty if the host does not report them."""
    nodes = numa_nodes(host)
    cards = {nic.key: nic.pci for nic in host.get("config.network.pnic") or []}
    uplinks = (getattr(device.backing, "pairedUplink", None) for device in host.get(RDMA) or [])
    found = [nodes[cards[uplink]] for uplink in uplinks if uplink in cards and cards[uplink] in nodes]
    return tuple(dict.fromkeys(found))
