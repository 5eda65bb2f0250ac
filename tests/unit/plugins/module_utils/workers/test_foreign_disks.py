"""The disks of a worker and those of others, with its record, without one, and while a run is killed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere import properties, tasks
from plugins.module_utils.workers import foreign_disks
from plugins.module_utils.workers import machine as machines
from plugins.module_utils.workers.absent_worker import AbsentWorker
from plugins.module_utils.workers.clone import CloneLocations
from plugins.module_utils.workers.context import Context
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.worker_spec import WorkerSetOptions, WorkerSpec
from tests.fakes.worker_cluster import FakeWorkerCluster, disk, machine, record_of, with_values

BOOT, MADE = disk("w1"), disk("w1", "w1_1.vmdk", 1)
EXTRA = "config.extraConfig"


def built(*more: Any, record: Any = None) -> Machine:
    """The worker w1 with a boot disk, and a record of it unless another one is given."""
    return machine("w1", *more, config__extraConfig=[record] if record else [])


def unrecorded(*more: Any, **fields: Any) -> Machine:
    """The worker w1 as an earlier release left it."""
    return replace(with_values(built(*more), {EXTRA: []}), **fields)


def own(there: Machine) -> list[str]:
    return [one.backing.fileName for one in foreign_disks.own(there)]


@pytest.mark.parametrize(
    ("attached", "is_kept"),
    [
        (disk("w1", "dataset.vmdk", 1), True),
        (disk("w1", "w1_1.vmdk", 1), True),
        (disk("datasets", "data.vmdk", 1), True),
        (disk("w1", "w1_1.vmdk", 1, store="nfs"), True),
        (disk("w1", "fcd.vmdk", 1, vDiskId=vim.vslm.ID(id="52 0a")), True),
        (disk("w1", "shared.vmdk", 1, sharing="sharingMultiWriter"), True),
    ],
)
@pytest.mark.parametrize("has_record", [True, False])
def test_absent_keeps_a_disk_it_did_not_create(attached: Any, is_kept: bool, has_record: bool) -> None:
    cluster = FakeWorkerCluster(built(attached) if has_record else unrecorded(attached))
    cluster.marks["w1"] = {"built": True, "name": "w1", "cluster": "gpu"}
    context = Context(cluster, WorkerSetOptions("gpu", power_cycle=True), CloneLocations(cluster))
    subject = AbsentWorker(context, WorkerSpec("w1", {}))

    plan = subject.plan(subject.read())

    file = attached.backing.fileName
    assert plan.warnings == ((f"foreign, detached and kept: {file}",) if is_kept else ())


def moved(one: Any, file: str, **changes: Any) -> Any:
    """The disk with its UUID in another file, as after a snapshot or Storage vMotion."""
    backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(fileName=file, uuid=one.backing.uuid, **changes)
    return vim.vm.device.VirtualDisk(
        key=one.key, controllerKey=1000, unitNumber=one.unitNumber, capacityInKB=one.capacityInKB, backing=backing
    )


@pytest.mark.parametrize("file", ["[store] w1/w1_1-000001.vmdk", "[nfs] w1_2/w1.vmdk"])
def test_a_recorded_disk_stays_own_in_another_file(file: str) -> None:
    assert own(built(moved(MADE, file), record=record_of(BOOT, MADE))) == ["[store] w1/w1.vmdk", file]


def test_a_recorded_disk_that_others_share_is_foreign() -> None:
    shared = moved(MADE, "[store] w1/w1_1.vmdk", sharing="sharingMultiWriter")

    assert own(built(shared, record=record_of(BOOT, MADE))) == ["[store] w1/w1.vmdk"]


def test_disks_that_share_a_uuid_are_foreign() -> None:
    copy = moved(BOOT, "[store] w1/backup.vmdk")
    copy.key, copy.unitNumber = 2002, 2

    assert own(built(MADE, copy, record=record_of(BOOT, MADE))) == ["[store] w1/w1_1.vmdk"]


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (unrecorded(MADE), ["[store] w1/w1.vmdk"]),
        (unrecorded(MADE, expected_gb=[10, 10]), ["[store] w1/w1.vmdk", "[store] w1/w1_1.vmdk"]),
        (unrecorded(MADE, expected_gb=[10, 11]), ["[store] w1/w1.vmdk"]),
        (unrecorded(disk("w1", "w1_1.vmdk", 1, store="nfs"), expected_gb=[10, 10]), ["[store] w1/w1.vmdk"]),
        (unrecorded(MADE, built=False), ["[store] w1/w1.vmdk", "[store] w1/w1_1.vmdk"]),
        # A restore from a backup gives new UUIDs to the disks and keeps the record.
        (built(MADE, record=record_of(disk("old"))), ["[store] w1/w1.vmdk"]),
        (built(MADE, record=vim.option.OptionValue(key=foreign_disks.RECORD, value="{")), ["[store] w1/w1.vmdk"]),
    ],
)
def test_unrecorded_worker_owns_first_disk_and_expected_sizes(there: Machine, expected: list[str]) -> None:
    assert own(there) == expected
    assert not foreign_disks.is_recorded(there)
    record = vim.option.OptionValue(key=foreign_disks.RECORD, value=foreign_disks.record(there))
    assert own(with_values(there, {EXTRA: [record]})) == expected
    assert foreign_disks.is_recorded(with_values(there, {EXTRA: [record]}))


def created(there: Machine) -> str:
    """The record that is written with the call that creates the disk MADE."""
    device = vim.vm.device.VirtualDisk(controllerKey=1000, unitNumber=1, capacityInKB=MADE.capacityInKB)
    change = vim.vm.device.VirtualDeviceSpec(operation="add", fileOperation="create", device=device)
    return foreign_disks.record(there, [change])


def test_owns_a_disk_from_its_creation_on() -> None:
    record = vim.option.OptionValue(key=foreign_disks.RECORD, value=created(built()))
    there = built(MADE, record=record)

    assert own(there) == ["[store] w1/w1.vmdk", "[store] w1/w1_1.vmdk"]
    assert not foreign_disks.is_recorded(there)
    larger = disk("w1", "w1_1.vmdk", 1, capacityInKB=2 * MADE.capacityInKB)
    assert own(built(larger, record=record)) == ["[store] w1/w1.vmdk"]


def test_settle_replaces_the_places_by_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    there = built(MADE, record=vim.option.OptionValue(key=foreign_disks.RECORD, value=created(built())))
    written: list[Any] = []

    def reconfigure(spec: Any) -> Any:
        written.append(spec.extraConfig)
        return SimpleNamespace()

    def read(_session: Any, _refs: Any) -> Mapping[str, Machine]:
        return {"vm-w1": with_values(there, {EXTRA: written[-1]})}

    there.ref = SimpleNamespace(_moId="vm-w1", ReconfigVM_Task=reconfigure)
    monkeypatch.setattr(tasks, "wait", lambda *_args: None)
    monkeypatch.setattr(machines, "read", read)

    foreign_disks.settle(there)
    foreign_disks.settle(there)

    assert [option.value for (option,) in written] == [record_of(BOOT, MADE).value]


def test_snapshots_keep_the_disks_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = SimpleNamespace(snapshot=vim.vm.Snapshot("snapshot-1"), childSnapshotList=[])
    theirs = disk("w1", "dataset.vmdk", 2)
    there = with_values(built(record=record_of(BOOT, MADE)), {"snapshot": SimpleNamespace(rootSnapshotList=[tree])})
    values = {"snapshot-1": {"config.hardware.device": [BOOT, MADE, theirs]}}
    monkeypatch.setattr(properties, "read_many", lambda _session, _refs, _paths: values)

    assert foreign_disks.files(foreign_disks.in_snapshots(there)) == "[store] w1/dataset.vmdk"
