# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The disks that are attached to a worker and do not belong to it: data of a user, or a volume of Kubernetes.

vSphere deletes a virtual machine with all its disks, whatever folder they are in, so these are detached first. A disk
is foreign if its file is outside the folder of the virtual machine, if it is a first class disk, or if several virtual
machines may write to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import StillDiffers
from ..vsphere import properties, tasks
from ..vsphere.faults import translating_faults
from ..vsphere.sdk import vim
from .capacity import machines
from .machine import HOME, Machine

MULTI_WRITER = "sharingMultiWriter"
DETACH_SECONDS = 600


def own(machine: Machine) -> list[Any]:
    """Return the disks that belong to the virtual machine; of a template all, because a clone has a copy of each."""
    foreign = [] if machine["config.template"] else attached(machine)
    return [disk for disk in machine.devices(vim.vm.device.VirtualDisk) if disk not in foreign]


def attached(machine: Machine) -> list[Any]:
    """Return the foreign disks of a virtual machine."""
    return [disk for disk in machine.devices(vim.vm.device.VirtualDisk) if _is_foreign(machine, disk)]


def files(disks: Iterable[Any]) -> str:
    """Return the files of disks as a user reads them in vCenter."""
    return ", ".join(_file(disk) for disk in disks)


def in_snapshots(machine: Machine) -> list[Any]:
    """Return the foreign disks in the snapshots of a virtual machine; vSphere deletes them too."""
    refs = list(_snapshots(machine["snapshot"].rootSnapshotList)) if machine["snapshot"] else []
    read = properties.read_many(machine.session, refs, (machines.DEVICES,)).values()
    disks = [disk for values in read for disk in machines.devices(values, vim.vm.device.VirtualDisk)]
    return list({_file(disk): disk for disk in disks if _is_foreign(machine, disk)}.values())


def detach(machine: Machine) -> None:
    """Detach the foreign disks of a virtual machine that is off, and verify that it has none any more."""
    machine.refresh()
    disks = attached(machine)
    if not disks:
        return
    tried = f"detach {files(disks)}"
    removed = [vim.vm.device.VirtualDeviceSpec(operation="remove", device=disk) for disk in disks]
    spec = vim.vm.ConfigSpec(changeVersion=machine["config.changeVersion"], deviceChange=removed)
    with translating_faults(machine.name, tried):
        task = machine.ref.ReconfigVM_Task(spec)
    tasks.wait(machine.session, tasks.Started(task, machine.name, tried), DETACH_SECONDS)
    machine.refresh()
    if attached(machine):
        reason = "the server accepted it, yet they are attached"
        raise StillDiffers(machine.name, tried, reason, "detach them in vCenter, keep their files, and run again")


def _is_foreign(machine: Machine, disk: Any) -> bool:
    if not _file(disk) or not machine[HOME]:
        return False
    shared = getattr(disk.backing, "sharing", None) == MULTI_WRITER
    return bool(_folder(_file(disk)) != _folder(machine[HOME]) or disk.vDiskId or shared)


def _file(disk: Any) -> str:
    return str(getattr(disk.backing, "fileName", None) or "")


def _folder(file: str) -> str:
    """Return the folder of a file on any datastore; vSphere writes ``[datastore] folder/file``."""
    return file.partition("] ")[2].rpartition("/")[0]


def _snapshots(trees: Iterable[Any]) -> Iterator[Any]:
    for tree in trees:
        yield tree.snapshot
        yield from _snapshots(tree.childSnapshotList or [])
