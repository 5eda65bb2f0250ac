"""The disks of a worker, and attached disks that are foreign: data of a user, a volume of Kubernetes.

vSphere deletes a virtual machine with all its disks, so foreign disks are detached first. The file of a disk does not
show whose it is: the vSphere Client puts a disk of a user into the folder of the virtual machine, with a name like
those of the worker's disks. So the worker keeps a record of the disks that this collection cloned or created, in its
advanced settings. All other disks are foreign, and so is a disk of the record that became a first class disk or that
several virtual machines may write to.

The record identifies a disk by the UUID that it keeps in snapshots and moves to other datastores. The server chooses
the UUID when it creates the disk. Until the UUID is known, the record contains the place and the size of the disk, from
the same call that creates it.
"""

from __future__ import annotations

import collections
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import StillDiffers
from ..vsphere import properties
from ..vsphere.sdk import ApiObject, vim
from .capacity import machines
from .machine import HOME, Machine

RECORD = "dml.vsphere.disks"
MULTI_WRITER = "sharingMultiWriter"
_PLACE = "place "


def own(machine: Machine) -> list[ApiObject]:
    """Return the disks that belong to the virtual machine; of a template all, because a clone has a copy of each."""
    disks = _disks(machine)
    return disks if machine["config.template"] else _own_among(machine, disks)


def attached(machine: Machine) -> list[ApiObject]:
    return _foreign_among(machine, _disks(machine))


def files(disks: Iterable[ApiObject]) -> str:
    """Return the files of disks as a user reads them in vCenter."""
    return ", ".join(_file(disk) or f"disk {disk.key}" for disk in disks)


def in_snapshots(machine: Machine) -> list[ApiObject]:
    """Return the foreign disks in the snapshots of a virtual machine; vSphere deletes them too."""
    refs = list(_snapshots(machine["snapshot"].rootSnapshotList)) if machine["snapshot"] else []
    read = properties.read_many(machine.session, refs, (machines.DEVICES,)).values()
    kept = [machines.devices(values, vim.vm.device.VirtualDisk) for values in read]
    foreign = [disk for disks in kept for disk in _foreign_among(machine, disks)]
    return list({_file(disk): disk for disk in foreign}.values())


def is_recorded(machine: Machine) -> bool:
    """Return whether the record contains the UUIDs of all disks of the worker."""
    entries = _entries(machine)
    is_settled = RECORD in machine.extra and not any(entry.startswith(_PLACE) for entry in entries)
    return is_settled and all(_identity(disk) in entries for disk in own(machine))


def record(machine: Machine, changes: Iterable[ApiObject] = ()) -> str:
    """Return the record of a worker, with the disks that these changes of devices create."""
    before = [entry for entry in _entries(machine) if not entry.startswith(_PLACE)]
    there = [_identity(disk) for disk in _own_among(machine, _disks(machine))]
    created = [_place(change.device) for change in changes if change.fileOperation == "create"]
    return json.dumps(list(dict.fromkeys([*before, *there, *created])))


def record_of_clone(template: Machine, snapshot: ApiObject = None) -> str:
    """Return the record of a new clone, which has a copy of each disk of the template or snapshot at the same place."""
    disks = _disks(template)
    if snapshot:
        values = properties.read_many(template.session, [snapshot], (machines.DEVICES,))[snapshot._moId]
        disks = machines.devices(values, vim.vm.device.VirtualDisk)
    return json.dumps([_place(disk) for disk in disks])


def settle(machine: Machine) -> None:
    """Replace the places in the record by the UUIDs of the disks."""
    if not is_recorded(machine):
        option = vim.option.OptionValue(key=RECORD, value=record(machine))
        _reconfigure(machine, "record its disks", extraConfig=[option])


def detach(machine: Machine) -> None:
    """Detach the foreign disks of a virtual machine that is off, and verify that it has none any more."""
    machine.refresh()
    disks = attached(machine)
    if not disks:
        return
    tried = f"detach {files(disks)}"
    removed = [vim.vm.device.VirtualDeviceSpec(operation="remove", device=disk) for disk in disks]
    _reconfigure(machine, tried, deviceChange=removed)
    if attached(machine):
        reason = "the server accepted it, yet they are attached"
        raise StillDiffers(machine.name, tried, reason, "detach them in vCenter, keep their files, and run again")


def _reconfigure(machine: Machine, tried: str, **changes: object) -> None:
    machine.reconfigure(vim.vm.ConfigSpec(changeVersion=machine["config.changeVersion"], **changes), tried)
    machine.refresh()


def _disks(machine: Machine) -> list[ApiObject]:
    return machine.devices(vim.vm.device.VirtualDisk)


def _own_among(machine: Machine, disks: Sequence[ApiObject]) -> list[ApiObject]:
    """Return which disks, sorted by key, are the worker's."""
    known = _recorded(machine, disks)
    private = [disk for disk in disks if not disk.vDiskId and getattr(disk.backing, "sharing", None) != MULTI_WRITER]
    if known is None:
        return _unrecorded(machine, private)
    # A copy of a disk's file has the UUID of the disk.
    same = collections.Counter(map(_identity, disks))
    return [disk for disk in private if known & _names(disk) and same[_identity(disk)] == 1]


def _foreign_among(machine: Machine, disks: Sequence[ApiObject]) -> list[ApiObject]:
    mine = _own_among(machine, disks)
    return [disk for disk in disks if disk not in mine]


def _recorded(machine: Machine, disks: Iterable[ApiObject]) -> set[str] | None:
    """Return the entries of the record; None if it names none of the disks, as after a restore from a backup."""
    entries = set(_entries(machine))
    return entries if any(entries & _names(disk) for disk in disks) else None


def _entries(machine: Machine) -> list[str]:
    try:
        entries = json.loads(machine.extra.get(RECORD) or "[]")
    except (ValueError, RecursionError):
        return []
    return [entry for entry in entries if isinstance(entry, str)] if isinstance(entries, list) else []


def _unrecorded(machine: Machine, disks: Iterable[ApiObject]) -> list[ApiObject]:
    """Return the disks of a worker without a record, which an earlier release built.

    vSphere gives the name of the virtual machine to the first disk of a clone, and no later disk gets that name. Other
    disks are the worker's as long as their sizes are the expected ones, in order. An adopted machine had its disks
    before.
    """
    home = str(machine[HOME] or "").removesuffix(".vmx")
    local = [disk for disk in disks if home and _folder(_file(disk)) == _folder(home)]
    if not machine.built:
        return local
    pairs = itertools.takewhile(lambda pair: _gigabytes(pair[0]) == pair[1], zip(local, machine.expected_gb))
    expected = [disk for disk, _size in pairs]
    first = re.compile(re.escape(home) + r"(-\d{6})?\.vmdk")
    return [disk for disk in local if disk in expected or first.fullmatch(_file(disk))]


def _names(disk: ApiObject) -> set[str]:
    return {_identity(disk), _place(disk)}


def _identity(disk: ApiObject) -> str:
    return str(getattr(disk.backing, "uuid", None) or "").lower() or _file(disk)


def _place(disk: ApiObject) -> str:
    return f"{_PLACE}{disk.controllerKey}:{disk.unitNumber} {disk.capacityInKB} KB"


def _gigabytes(disk: ApiObject) -> int:
    return -(-int(disk.capacityInKB) // (1024 * 1024))


def _file(disk: ApiObject) -> str:
    return str(getattr(disk.backing, "fileName", None) or "")


def _folder(file: str) -> str:
    """Return the folder of a file with its datastore; vSphere writes ``[datastore] folder/file``."""
    return file.rpartition("/")[0]


def _snapshots(trees: Iterable[ApiObject]) -> Iterator[ApiObject]:
    for tree in trees:
        yield tree.snapshot
        yield from _snapshots(tree.childSnapshotList or [])
