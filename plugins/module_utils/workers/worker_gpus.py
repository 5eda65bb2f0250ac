"""The GPUs of a worker: vGPUs, device groups, PCI devices in passthrough, and devices of a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Refused
from ..vsphere.faults import translating_faults
from ..vsphere.options import is_on
from ..vsphere.sdk import ApiObject, vim
from . import candidate_hosts
from .capacity import machines, pci_ids
from .machine import Machine
from .placement import gpu_slots, mmio
from .placement.gpu_slots import VgpuProfile
from .placement.place import Demand, DeviceRequest
from .worker_cluster import WorkerCluster
from .worker_spec import Gpu, WorkerSpec

NVIDIA = f"{pci_ids.NVIDIA:04x}:"
USE_MMIO, MMIO_SIZE = "pciPassthru.use64bitMMIO", "pciPassthru.64bitMMIOSizeGB"


@dataclass(frozen=True)
class AssignedGpu:
    """A GPU of a virtual machine with its devices; a device group has several."""

    gpu: Gpu
    devices: tuple[Any, ...]
    group: Any = None


def assigned_gpus(machine: Machine) -> list[AssignedGpu]:
    groups = getattr(machine["config.deviceGroups"], "deviceGroup", None) or []
    named = {group.groupInstanceKey: group for group in groups}
    single, grouped = list[AssignedGpu](), dict[int, list[Any]]()
    for device in machine.devices(vim.vm.device.VirtualPCIPassthrough):
        info = getattr(device, "deviceGroupInfo", None)
        gpu = _gpu(device.backing)
        if info and info.groupInstanceKey in named:
            grouped.setdefault(info.groupInstanceKey, []).append(device)
        elif gpu:
            single.append(AssignedGpu(gpu, (device,)))
    of_groups = [
        AssignedGpu(Gpu(group=named[key].deviceGroupName), tuple(some), named[key]) for key, some in grouped.items()
    ]
    return single + of_groups


def group_names(machine: Machine) -> list[str]:
    """Return the device groups of a virtual machine; the vGPUs of a group are linked with each other."""
    return [str(assigned.gpu.group) for assigned in assigned_gpus(machine) if assigned.group is not None]


def names_of(gpus: Sequence[Gpu]) -> list[str]:
    return sorted(str(gpu) for gpu in gpus)


def compare(
    desired: Sequence[Gpu], there: Sequence[AssignedGpu]
) -> tuple[list[AssignedGpu], list[Gpu], list[AssignedGpu]]:
    """Return the GPUs that stay, the GPUs to add, and the GPUs to remove."""
    left, kept, missing = list(there), list[AssignedGpu](), list[Gpu]()
    for gpu in sorted(desired, key=lambda one: str(one.device), reverse=True):
        match = next((one for one in left if _same(gpu, one.gpu)), None)
        if match:
            left.remove(match)
            kept.append(match)
        else:
            missing.append(gpu)
    return kept, missing, left


def names_after(desired: WorkerSpec, there: Sequence[AssignedGpu]) -> list[str]:
    kept, missing, _left = compare(desired.gpus or (), there)
    return names_of([*(assigned.gpu for assigned in kept), *missing])


def demand_of(gpus: Sequence[Gpu], memory_mb: int, cpus: int) -> Demand:
    """Return the GPUs, memory and CPUs that a worker needs on its host."""
    return Demand(
        profiles=tuple(gpu.profile for gpu in gpus if gpu.profile),
        groups=tuple(gpu.group for gpu in gpus if gpu.group),
        devices=tuple(gpu.device for gpu in gpus if not gpu.profile and not gpu.group),
        memory_mb=memory_mb,
        cpus=cpus,
    )


def desired_window_gb(
    desired: WorkerSpec, memory_of: Callable[[DeviceRequest], int | None], described: Iterable[VgpuProfile] = ()
) -> int:
    """Return the size of the 64-bit MMIO window for the GPUs of a worker, in gigabytes."""
    if desired["mmio_gb"] is not None:
        return int(desired["mmio_gb"])
    each = (_sizes(desired.name, gpu, memory_of, described) for gpu in desired.gpus or ())
    return mmio.window_gb(size for sizes in each for size in sizes)


def _sizes(
    name: str, gpu: Gpu, memory_of: Callable[[DeviceRequest], int | None], described: Iterable[VgpuProfile]
) -> Iterator[float]:
    if gpu.memory_gb:
        yield gpu.memory_gb
        return
    profiles = Demand((gpu.profile,) if gpu.profile else (), (gpu.group,) if gpu.group else ()).vgpus
    found = [gpu_slots.known(profile, described) for profile in profiles]
    sizes = [one.gigabytes for one in found if one]
    if not profiles and (size := memory_of(gpu.device)):
        sizes = [size]
    if not sizes:
        remedy = "set memory_gb of that GPU, or mmio_gb"
        raise Refused(name, "size its 64-bit memory window", f"the memory of {gpu} is unknown", remedy)
    yield from sizes


def window_gb(extra: Mapping[str, str]) -> int | None:
    """Return the size of the 64-bit MMIO window; None if it is not set."""
    size = extra.get(MMIO_SIZE, "")
    return int(size) if is_on(extra.get(USE_MMIO)) and size.isdigit() else None


def window_options(size: int) -> dict[str, str]:
    """Return the advanced settings of a 64-bit MMIO window; an empty text removes a setting."""
    return {USE_MMIO: "TRUE" if size else "", MMIO_SIZE: str(size) if size else ""}


def has_passthrough(desired: WorkerSpec) -> bool:
    """Return whether a worker has a PCI device in passthrough."""
    return any(not gpu.profile and not gpu.group for gpu in desired.gpus or ())


@dataclass(frozen=True)
class DeviceBackings:
    """The devices that a host offers.

    ``fixed`` returns the backing of a device by address, ``kinds`` the vendor:device IDs with a label, ``group`` the
    devices of a device group.
    """

    fixed: Callable[[str], Any]
    kinds: Callable[[str], Sequence[str]]
    group: Callable[[str], Sequence[Any]]


def change(
    spec: ApiObject, desired: WorkerSpec, machine: Machine, backings: DeviceBackings, new_key: Iterator[int]
) -> None:
    """Add the changes of the GPUs to a ConfigSpec."""
    kept, missing, too_many = compare(desired.gpus or (), assigned_gpus(machine))
    if any(gpu.group for gpu in (*missing, *(assigned.gpu for assigned in too_many))):
        # The server removes every group that the list does not contain.
        stay = [assigned.group for assigned in kept if assigned.gpu.group]
        spec.deviceGroups = vim.vm.VirtualDeviceGroups(deviceGroup=stay)
    for assigned in too_many:
        spec.deviceChange += [_operation("remove", device) for device in assigned.devices]
    for gpu in missing:
        if gpu.group:
            _add_group(spec, gpu, backings, new_key)
            continue
        made = vim.vm.device.VirtualPCIPassthrough(key=next(new_key), backing=_backing(gpu, backings))
        spec.deviceChange.append(_operation("add", made))


def _add_group(spec: ApiObject, gpu: Gpu, backings: DeviceBackings, new_key: Iterator[int]) -> None:
    """Add a device group with all of its devices, which vSphere accepts only in one change; the server numbers them."""
    number = next(new_key)
    made = vim.vm.VirtualDeviceGroups.VendorDeviceGroup(groupInstanceKey=number, deviceGroupName=gpu.group)
    spec.deviceGroups.deviceGroup.append(made)
    for template in backings.group(gpu.group):
        sequence = template.deviceGroupInfo.sequenceId
        info = vim.vm.device.VirtualDevice.DeviceGroupInfo(groupInstanceKey=number, sequenceId=sequence)
        device = vim.vm.device.VirtualPCIPassthrough(key=next(new_key), backing=template.backing, deviceGroupInfo=info)
        spec.deviceChange.append(_operation("add", device))


def _backing(gpu: Gpu, backings: DeviceBackings) -> ApiObject:
    backing = vim.vm.device.VirtualPCIPassthrough
    if gpu.profile:
        return backing.VmiopBackingInfo(vgpu=gpu.profile)
    if gpu.device.device_class:
        return backing.DvxBackingInfo(deviceClass=gpu.device.device_class)
    if gpu.device.address:
        return backings.fixed(gpu.device.address)
    kinds = [gpu.device.kind] if gpu.device.kind else backings.kinds(gpu.device.label)
    ids = [[int(part, 16) for part in kind.split(":")] for kind in kinds]
    allowed = [backing.AllowedDevice(vendorId=vendor, deviceId=device) for vendor, device in ids]
    return backing.DynamicBackingInfo(
        allowedDevice=allowed, customLabel=gpu.device.label or None, deviceName="", assignedId=None
    )


def device_backings_of(cluster: WorkerCluster, host: str) -> DeviceBackings:
    """Return the functions that read the devices of a host from vCenter."""
    return DeviceBackings(
        fixed=lambda address: _device(cluster, host, address),
        kinds=lambda label: candidate_hosts.kinds_of(cluster.hosts.values(), label),
        group=lambda name: _group_devices(cluster, host, name),
    )


def _device(cluster: WorkerCluster, host: str, address: str) -> ApiObject:
    """Return the backing of a device by its address; the backing needs a system ID that only the host reports."""
    offered = cluster.target(host).pciPassthrough or []
    device = next((one for one in offered if one.pciDevice.id == address), None)
    if device is None:
        raise Refused(
            host,
            f"pass through its device {address}",
            "it does not offer the device",
            "set the device to passthrough first",
        )
    return _fixed_backing(device)


def _group_devices(cluster: WorkerCluster, host: str, name: str) -> list[ApiObject]:
    with translating_faults(host, f"read its device group {name}"):
        offered = cluster.target(host).vendorDeviceGroupInfo
        group = next(one for one in offered if one.deviceGroupName == name)
        return [one.device for one in group.componentDeviceInfo]


def _fixed_backing(offered: ApiObject) -> ApiObject:
    """Return the backing for a device that a host offers."""
    device = offered.pciDevice
    return vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=device.id,
        deviceId=f"{pci_ids.unsigned(device.deviceId):x}",
        systemId=offered.systemId,
        vendorId=device.vendorId,
        deviceName=device.deviceName,
    )


def _operation(operation: str, device: object) -> Any:
    return vim.vm.device.VirtualDeviceSpec(operation=operation, device=device)


def _gpu(backing: object) -> Gpu | None:
    """Return the GPU of a backing; None for any other device."""
    if isinstance(backing, vim.vm.device.VirtualPCIPassthrough.DvxBackingInfo):
        return Gpu(device=DeviceRequest(device_class=str(backing.deviceClass)))
    passed = machines.passthrough_device_of(backing)
    if passed is None:
        return Gpu(profile=str(backing.vgpu)) if hasattr(backing, "vgpu") else None
    if not passed.nvidia:
        return None
    if not passed.any_of_kind:
        return Gpu(device=DeviceRequest(address=passed.address))
    return Gpu(device=DeviceRequest(next(kind for kind in passed.kinds if kind.startswith(NVIDIA)), passed.label))


def _same(desired: Gpu, there: Gpu) -> bool:
    if desired.profile or desired.group:
        return (desired.profile, desired.group) == (there.profile, there.group)
    if there.profile or there.group:
        return False
    device, other = desired.device, there.device
    if device.device_class != other.device_class:
        return False
    labelled_only = not device.kind and not device.address and bool(other.kind)
    kinds_agree = labelled_only or device.kind == other.kind
    return kinds_agree and device.label == other.label and device.address == other.address
