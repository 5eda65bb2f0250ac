"""Machines that worker_vm adopts, releases and deletes, and changes while a worker runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import custom_fields, properties
from plugins.module_utils.workers import worker_mark
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.workers import DEFAULTS, HOSTS, desired, do, machine, move, reconfigure, states, switch

STRANGER = "\n  - {name: worker02, host: esx02.lab, cpus: 2, memory_mb: 4096}\n"
ABSENT: dict[str, Any] = {"cluster": "gpu", "state": "absent"}
NAMES = [{"name": "worker01"}, {"name": "worker02"}]


pytestmark = pytest.mark.datacentre(text=HOSTS.replace("[shared]", "[shared, nfs]").rstrip() + STRANGER)


def methods(vcenter: Simulator, name: str) -> list[str]:
    return [write["method"] for write in vcenter.writes() if write["name"] == name]


def names(vcenter: Simulator) -> set[str]:
    """All virtual machines."""
    with machine(vcenter, "debian-12") as vm:
        found = properties.find_all(vm.session, vim.VirtualMachine, ("name",))
        return {values["name"] for _ref, values in found}


def test_adopts_a_foreign_machine_only_on_request(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("worker_vm", **desired(2))
    assert "worker02: could not make it a worker" in refused.msg
    assert "set adopt: true" in refused.msg
    assert vcenter.writes() == []
    taken = ansible.module("worker_vm", adopt=True, **desired(2))
    assert taken.rc == 0, taken.out
    assert states(taken)["worker02"]["mark"]["built"] is False
    assert states(taken)["worker01"]["mark"]["built"] is True
    assert methods(vcenter, "worker02") == ["SetField", "ReconfigVM_Task", "PowerOnVM_Task"]
    assert not ansible.module("worker_vm", **desired(2)).changed


def test_deletes_created_machines_and_only_releases_adopted_ones(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", adopt=True, **desired(2)).rc == 0
    vcenter.clear()
    running = ansible.module("worker_vm", **ABSENT, workers=NAMES)
    assert "worker01: could not change worker VM: it runs: set power_cycle: true" in running.msg
    planned = ansible.module("worker_vm", check=True, **ABSENT, power_cycle=True, workers=NAMES)
    assert (planned.changed, vcenter.writes()) == (True, []), planned.out
    gone = ansible.module("worker_vm", **ABSENT, power_cycle=True, workers=NAMES)
    assert gone.rc == 0, gone.out
    assert names(vcenter) == {"debian-12", "worker02"}
    assert methods(vcenter, "worker01") == ["ShutdownGuest", "Destroy_Task"]
    assert methods(vcenter, "worker02") == ["ReconfigVM_Task", "SetField"]
    vcenter.clear()
    again = ansible.module("worker_vm", **ABSENT, power_cycle=True, workers=NAMES)
    assert (again.rc, again.changed, vcenter.writes()) == (0, False, []), again.out
    assert again.result["workers"][1]["warnings"] == ["it was left alone: it carries no mark of this collection"]


def test_does_not_claim_a_clone_of_a_worker(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    with machine(vcenter, "worker01") as vm:
        text = next(one.value for one in vm.ref.customValue)
        key = next(one.key for one in vm.session.content.customFieldsManager.field if one.name == "dml.vsphere.worker")
        field = vm.session.content.customFieldsManager
        other = next(
            ref
            for ref, values in properties.find_all(vm.session, vim.VirtualMachine, ("name",))
            if values["name"] == "worker02"
        )
        field.SetField(entity=other, key=key, value=text)
    vcenter.clear()
    left = ansible.module("worker_vm", **ABSENT, power_cycle=True, workers=[{"name": "worker02"}])
    assert (left.rc, left.changed, vcenter.writes()) == (0, False, []), left.out


def test_rejects_a_mark_that_another_user_wrote(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    with machine(vcenter, "worker02") as vm:
        text = {"name": "worker02", "cluster": "gpu", "uuid": vm.ref.config.instanceUuid, "built": True}
        custom_fields.store(vm.session, vm.ref, "worker02", worker_mark.ATTRIBUTE, json.dumps(text), vim.VirtualMachine)
    vcenter.clear()

    changed = ansible.module("worker_vm", power_cycle=True, **desired(2))
    deleted = ansible.module("worker_vm", **ABSENT, power_cycle=True, workers=[{"name": "worker02"}])
    names_left = names(vcenter)
    adopted = ansible.module("worker_vm", adopt=True, **desired(2))

    assert "worker02: could not take it as the worker: its advanced setting dml.vsphere.confirmation" in changed.msg
    assert (deleted.rc, names_left) == (0, {"debian-12", "worker01", "worker02"}), deleted.out
    assert states(adopted)["worker02"]["mark"]["built"] is False


def test_makes_some_changes_while_a_worker_runs(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    vcenter.clear()
    more = {**DEFAULTS, "annotation": "trains resnet", "disks_gb": [20, 50], "role": "launcher"}
    done = ansible.module("worker_vm", **desired(1, defaults=more))
    assert (done.rc, done.result["needs"]) == (0, []), done.out
    # The server chooses the UUID of a disk, which the second call records.
    assert methods(vcenter, "worker01") == ["SetField", "ReconfigVM_Task", "ReconfigVM_Task"]
    state = states(done)["worker01"]
    assert (state["disks_gb"], state["annotation"], state["mark"]["role"]) == ([20, 50], "trains resnet", "launcher")
    assert not ansible.module("worker_vm", **desired(1, defaults=more)).changed


def test_reconnects_a_disconnected_nic(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    with machine(vcenter, "worker01") as vm:
        cards = [one for one in vm.ref.config.hardware.device if isinstance(one, vim.vm.device.VirtualVmxnet3)]
        card = next(one for one in cards if not isinstance(one, vim.vm.device.VirtualVmxnet3Vrdma))
        card.connectable.startConnected = False
        change = vim.vm.device.VirtualDeviceSpec(operation="edit", device=card)
    reconfigure(vcenter, "worker01", deviceChange=[change])
    shown = ansible.module("worker_vm", check=True, **desired(1))
    (diff,) = shown.result["diff"]
    assert (diff["before"]["management_nic"]["connected"], diff["after"]["management_nic"]["connected"]) == (
        False,
        True,
    )
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    assert not ansible.module("worker_vm", **desired(1)).changed


def test_moves_a_vgpu_worker_cold_without_hot_migration(start: Start, ansible_for: AnsibleFor) -> None:
    cold = start(text=HOSTS)
    ansible = ansible_for(cold)
    pinned = {"workers": [{"name": "worker01", "host": "esx01.lab"}]}
    assert ansible.module("worker_vm", **desired(**pinned)).rc == 0
    move(cold, "worker01", "esx02.lab")
    with machine(cold, "worker01") as vm:
        off = vim.option.OptionValue(key="vgpu.hotmigrate.enabled", value=False)
        vm.session.content.setting.UpdateOptions([off])
    refused = ansible.module("worker_vm", **desired(**pinned))
    assert "(its vGPU, because this vCenter does not migrate running machines with vGPUs) can change" in refused.msg
    cold.clear()
    done = ansible.module("worker_vm", **desired(power_cycle=True, **pinned))
    assert done.rc == 0, done.out
    assert methods(cold, "worker01") == ["ShutdownGuest", "RelocateVM_Task", "PowerOnVM_Task"]


def test_failed_worker_does_not_hide_the_others(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.fault("PowerOnVM_Task", "task_fails", fault="InsufficientGraphicsResourcesFault", name="worker01")
    outcome = ansible.module("worker_vm", **desired(3, workers=[{"name": "worker01"}, {"name": "worker03"}]))
    assert outcome.rc == 1
    by_name = {entry["name"]: entry for entry in outcome.result["workers"]}
    assert by_name["worker01"]["failed"]
    assert by_name["worker03"]["state"]["power"] == "on"
    again = ansible.module("worker_vm", **desired(3, workers=[{"name": "worker01"}, {"name": "worker03"}]))
    assert (again.rc, again.changed) == (0, True)


class Dataset:
    """A disk of a user, which is attached to a virtual machine; ``file`` is where the vSphere Client creates it."""

    def __init__(self, vcenter: Simulator, name: str, file: str = "[shared] datasets/images.vmdk") -> None:
        self.place, self.file = vcenter, file
        with machine(vcenter, name) as vm:
            datacenter = vm.session.content.rootFolder.childEntity[0]
            vm.session.content.fileManager.MakeDirectory(file.rpartition("/")[0], datacenter, True)
            controller = next(
                d for d in vm.ref.config.hardware.device if isinstance(d, vim.vm.device.VirtualSCSIController)
            )
        backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(fileName=self.file, diskMode="persistent")
        disk = vim.vm.device.VirtualDisk(
            key=-1, controllerKey=controller.key, unitNumber=5, capacityInKB=2**20, backing=backing
        )
        added = vim.vm.device.VirtualDeviceSpec(operation="add", fileOperation="create", device=disk)
        reconfigure(vcenter, name, deviceChange=[added])

    @property
    def exists(self) -> bool:
        """Whether its file is on the datastore."""
        with machine(self.place, "debian-12") as vm:
            datacenter = vm.session.content.rootFolder.childEntity[0]
            try:
                return bool(vm.session.content.virtualDiskManager.QueryVirtualDiskUuid(self.file, datacenter))
            except vim.fault.FileFault:
                return False


@pytest.mark.parametrize(
    "file", ["[shared] worker01/dataset.vmdk", "[shared] worker01/worker01_2.vmdk", "[nfs] worker01/worker01_1.vmdk"]
)
def test_absent_keeps_disks_of_users(vcenter: Simulator, ansible: Ansible, file: str) -> None:
    built = desired(1)
    built["workers"][0]["disks_gb"] = [10, 5]
    assert ansible.module("worker_vm", **built).rc == 0
    assert not ansible.module("worker_vm", **built).changed
    dataset = Dataset(vcenter, "worker01", file)
    assert dataset.exists
    assert not ansible.module("worker_vm", **built).changed
    vcenter.clear()
    deleted = ansible.module("worker_vm", **ABSENT, workers=NAMES[:1], power_cycle=True)
    assert deleted.rc == 0, deleted.out
    assert f"foreign, detached and kept: {dataset.file}" in deleted.out
    assert methods(vcenter, "worker01") == ["ShutdownGuest", "ReconfigVM_Task", "Destroy_Task"]
    assert "worker01" not in names(vcenter)
    assert dataset.exists
    dataset.file = "[shared] worker01/worker01_1.vmdk"
    assert not dataset.exists, "disks_gb created this disk"


def test_does_not_resize_a_users_disk(vcenter: Simulator, ansible: Ansible) -> None:
    workers = desired(1)
    assert ansible.module("worker_vm", **workers).rc == 0
    Dataset(vcenter, "worker01")
    own = states(ansible.module("worker_vm", **workers))["worker01"]["disks_gb"]
    workers["workers"][0]["disks_gb"] = [*own, 40]
    grown = ansible.module("worker_vm", **workers, power_cycle=True)
    assert grown.rc == 0, grown.out
    with machine(vcenter, "worker01") as vm:
        disks = [one for one in vm.ref.config.hardware.device if isinstance(one, vim.vm.device.VirtualDisk)]
    assert sorted(disk.capacityInKB // 2**20 for disk in disks) == sorted([*own, 1, 40])


def test_snapshot_with_a_users_disk_prevents_deletion(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    dataset = Dataset(vcenter, "worker01")
    switch(vcenter, "worker01", on=False)
    with machine(vcenter, "worker01") as vm:
        do(vm, vm.ref.CreateSnapshot_Task("before", "", False, False))
        disk = next(
            one
            for one in vm.ref.config.hardware.device
            if isinstance(one, vim.vm.device.VirtualDisk) and "datasets" in one.backing.fileName
        )
    reconfigure(vcenter, "worker01", deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="remove", device=disk)])
    vcenter.clear()
    refused = ansible.module("worker_vm", **ABSENT, workers=NAMES[:1])
    assert refused.rc != 0
    assert f"its snapshots contain {dataset.file}, which vSphere would delete with it" in refused.msg
    assert vcenter.writes() == [] and dataset.exists
