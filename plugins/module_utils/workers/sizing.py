"""The size of a worker: CPUs, memory, NUMA, latency, firmware, disks, and the encryption of its moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import Refused
from ..plan import State
from ..vsphere.sdk import ApiObject, vim
from . import foreign_disks
from .machine import Machine
from .worker_spec import WorkerSpec

NUMA = "numa."
PLAIN = ("cpus", "cores_per_socket", "memory_mb", "latency_sensitivity", "annotation", "vmotion_encryption")
NAMES = {
    "cpus": "numCPUs",
    "cores_per_socket": "numCoresPerSocket",
    "annotation": "annotation",
    "vmotion_encryption": "migrateEncryption",
}
KILOBYTES = 1024 * 1024


def facts(machine: Machine) -> dict[str, Any]:
    memory, extra = machine["config.hardware.memoryMB"], machine.extra
    latency = machine["config.latencySensitivity"]
    reserved = machine["config.memoryAllocation.reservation"] == memory
    return {
        "cpus": machine["config.hardware.numCPU"],
        "cores_per_socket": machine["config.hardware.numCoresPerSocket"],
        "memory_mb": memory,
        "memory_reserved": bool(machine["config.memoryReservationLockedToMax"]) and reserved,
        "cpu_reserved_mhz": machine["config.cpuAllocation.reservation"] or 0,
        "latency_sensitivity": str(latency.level) if latency else "normal",
        "firmware": machine["config.firmware"],
        "vmotion_encryption": machine["config.migrateEncryption"],
        "numa": {key.removeprefix(NUMA): value for key, value in extra.items() if key.startswith(NUMA)},
        "disks_gb": [_gigabytes(disk) for disk in foreign_disks.own(machine)],
        "annotation": machine["config.annotation"] or "",
    }


def desired_size(desired: WorkerSpec, current: State, host_mhz: int) -> dict[str, Any]:
    """Return the desired size; ``host_mhz`` is the clock rate of its host."""
    after = {key: desired[key] for key in PLAIN if desired[key] is not None}
    if desired["reserve_memory"]:
        after["memory_reserved"] = True
    if desired["numa"] is not None:
        after["numa"] = {**(current.get("numa") or {}), **{key: str(value) for key, value in desired["numa"].items()}}
    if desired["latency_sensitivity"] == "high":
        # Without a CPU reservation, vSphere does not start such a machine, or does not pin its CPUs.
        need = int(after.get("cpus") or current.get("cpus") or 1) * host_mhz
        after["cpu_reserved_mhz"] = max(need, int(current.get("cpu_reserved_mhz") or 0))
    if desired["disks_gb"] is not None:
        after["disks_gb"] = _disks(desired, current.get("disks_gb") or [])
    return after


def refuse_firmware(desired: WorkerSpec, there: str | None) -> None:
    """Refuse a change of the firmware: an installed system boots only with the firmware that it was installed on."""
    if desired["firmware"] and there and desired["firmware"] != there:
        reason = f"it has {there}, and an installed system does not boot with another firmware"
        raise Refused(desired.name, f"use {desired['firmware']} firmware", reason, "use a template that has it")


def change(spec: ApiObject, after: State, machine: Machine, new_key: Iterator[int]) -> None:
    """Add the changes of the size to a ConfigSpec."""
    now = facts(machine)
    differs = {key: value for key, value in after.items() if key in now and now[key] != value}
    for key in differs.keys() & NAMES.keys():
        setattr(spec, NAMES[key], differs[key])
    if differs.keys() & {"memory_mb", "memory_reserved"}:
        _give_memory(spec, {**now, **after})
    if "cpu_reserved_mhz" in differs:
        spec.cpuAllocation = vim.ResourceAllocationInfo(reservation=differs["cpu_reserved_mhz"])
    if "latency_sensitivity" in differs:
        spec.latencySensitivity = vim.LatencySensitivity(level=differs["latency_sensitivity"])
    if "numa" in differs:
        options = {f"{NUMA}{key}": value for key, value in differs["numa"].items() if now["numa"].get(key) != value}
        spec.extraConfig += [vim.option.OptionValue(key=key, value=value) for key, value in options.items()]
    if "disks_gb" in differs:
        spec.deviceChange += list(_disk_changes(differs["disks_gb"], machine, new_key))


def _give_memory(spec: ApiObject, after: State) -> None:
    """Set the memory with its reservation, because a locked reservation follows the size."""
    spec.memoryMB = after["memory_mb"]
    if after["memory_reserved"]:
        spec.memoryReservationLockedToMax = True
        spec.memoryAllocation = vim.ResourceAllocationInfo(reservation=spec.memoryMB)


def _disks(desired: WorkerSpec, there: list[int]) -> list[int]:
    """Return the sizes of all disks: disks in the options may grow or be added, the others stay."""
    for now, size in zip(there, desired["disks_gb"]):
        if size < now:
            reason = f"it has {now} GB, and a disk cannot shrink"
            raise Refused(desired.name, f"resize a disk to {size} GB", reason, f"request {now} GB or more")
    return [*desired["disks_gb"], *there[len(desired["disks_gb"]) :]]


def _disk_changes(sizes: list[int], machine: Machine, new_key: Iterator[int]) -> Iterator[ApiObject]:
    disks = foreign_disks.own(machine)
    for disk, size in zip(disks, sizes):
        if _gigabytes(disk) != size:
            disk.capacityInKB, disk.capacityInBytes = size * KILOBYTES, size * KILOBYTES * 1024
            yield vim.vm.device.VirtualDeviceSpec(operation="edit", device=disk)
    controller = next(iter(machine.devices(vim.vm.device.VirtualSCSIController)), None)
    if controller is None and len(sizes) > len(disks):
        raise Refused(machine.name, "add a disk", "it has no SCSI controller", "add one to its template")
    home = controller.key if controller else None
    used = {disk.unitNumber for disk in machine.devices(vim.vm.device.VirtualDisk) if disk.controllerKey == home}
    # Unit 7 is the controller itself.
    free = (unit for unit in range(64) if unit != 7 and unit not in used)
    # pylint: disable=stop-iteration-return # keys do not end, and 63 units outlast the disks of a worker
    for size in sizes[len(disks) :]:
        yield vim.vm.device.VirtualDeviceSpec(
            operation="add",
            fileOperation="create",
            device=vim.vm.device.VirtualDisk(
                key=next(new_key),
                controllerKey=home,
                unitNumber=next(free),
                capacityInKB=size * KILOBYTES,
                backing=vim.vm.device.VirtualDisk.FlatVer2BackingInfo(
                    fileName="", diskMode="persistent", thinProvisioned=True
                ),
            ),
        )


def _gigabytes(disk: ApiObject) -> int:
    return -(-int(disk.capacityInKB) // KILOBYTES)
