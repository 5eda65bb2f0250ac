"""Workers that were renamed, moved, cloned, or restored: the mark identifies each."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import properties
from tests.integration.ansible import Ansible
from tests.integration.fabrics import object_of, opened
from tests.integration.workers import DEFAULTS, HOSTS, desired, do, machine, states, switch

ABSENT: dict[str, Any] = {"cluster": "gpu", "state": "absent", "power_cycle": True}
WORKER = [{"name": "worker01"}]


pytestmark = pytest.mark.datacentre(text=HOSTS)


def names(vcenter: Simulator) -> list[str]:
    """All virtual machines."""
    with opened(vcenter) as one:
        return sorted(str(values["name"]) for _ref, values in properties.find_all(one, vim.VirtualMachine, ("name",)))


def rename(vcenter: Simulator, name: str, other: str) -> None:
    with machine(vcenter, name) as vm:
        do(vm, vm.ref.Rename_Task(newName=other))


def clone(vcenter: Simulator, name: str, copy: str) -> None:
    """A clone that a person makes of a machine, with its mark and its cloud-init data."""
    with machine(vcenter, name) as vm:
        location = vim.vm.RelocateSpec(pool=vm.ref.resourcePool, host=vm.ref.runtime.host)
        spec = vim.vm.CloneSpec(location=location, powerOn=False, template=False)
        do(vm, vm.ref.CloneVM_Task(folder=vm.ref.parent, name=copy, spec=spec))


def warnings(outcome: Any) -> str:
    return " | ".join(outcome.result["workers"][0]["warnings"])


def test_recognizes_a_renamed_worker(vcenter: Simulator, ansible: Ansible) -> None:
    built = states(ansible.module("worker_vm", **desired(1)))["worker01"]
    rename(vcenter, "worker01", "gpu-7")
    vcenter.clear()
    shown = ansible.module("worker_vm", check=True, **desired(1))
    assert (shown.rc, shown.changed) == (0, False), shown.out
    again = ansible.module("worker_vm", **desired(1))
    assert (again.rc, again.changed, vcenter.writes()) == (0, False, []), again.out
    assert "it was renamed: vCenter shows it as gpu-7; put_back: true" in warnings(again)
    assert states(again)["worker01"] == {**built, "name": "gpu-7"}
    info = ansible.module("worker_vm_info", cluster="gpu")
    assert [(one["name"], one["vm_name"]) for one in info.result["workers"]] == [("worker01", "gpu-7")]
    planned = ansible.module("vmotion_plan", cluster="gpu")
    assert [one["worker"] for one in planned.result["moves"]] == ["worker01"], planned.out
    back = ansible.module("worker_vm", put_back=True, **desired(1))
    assert (back.rc, back.changed, back.result["needs"]) == (0, True, []), back.out
    assert [one["method"] for one in vcenter.writes()] == ["ReconfigVM_Task"]
    assert names(vcenter) == ["debian-12", "worker01"]


def test_deletes_a_renamed_worker_by_its_original_name(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    rename(vcenter, "worker01", "gpu-7")
    as_new = ansible.module("worker_vm", **ABSENT, workers=[{"name": "gpu-7"}])
    assert "left alone: it is the worker worker01, renamed in vCenter" in warnings(as_new)
    planned = ansible.module("worker_vm", check=True, **ABSENT, workers=WORKER)
    assert "vCenter shows it as gpu-7" in planned.result["workers"][0]["why"], planned.out
    gone = ansible.module("worker_vm", **ABSENT, workers=WORKER)
    assert gone.rc == 0 and names(vcenter) == ["debian-12"], gone.out


def test_returns_a_worker_to_its_folder_on_request(vcenter: Simulator, ansible: Ansible) -> None:
    with machine(vcenter, "debian-12") as vm:
        home = vm.ref.parent
        expected, other = home.CreateFolder("gpu workers"), home.CreateFolder("archive")
        assert (expected.name, other.name) == ("gpu workers", "archive")
    foldered = desired(1, defaults={**DEFAULTS, "folder": "gpu workers"})
    assert states(ansible.module("worker_vm", **foldered))["worker01"]["folder"] == "gpu workers"
    with machine(vcenter, "worker01") as vm:
        do(vm, object_of(vm.session, vim.Folder, "archive").MoveIntoFolder_Task([vm.ref]))
    vcenter.clear()
    result = ansible.module("worker_vm", **foldered)
    assert (result.rc, result.changed, vcenter.writes()) == (0, False, []), result.out
    assert "it is in archive, not in gpu workers" in warnings(result)
    back = ansible.module("worker_vm", put_back=True, **foldered)
    assert states(back)["worker01"]["folder"] == "gpu workers", back.out
    assert [one["method"] for one in vcenter.writes()] == ["MoveIntoFolder_Task"]
    assert not ansible.module("worker_vm", put_back=True, **foldered).changed


def test_reports_a_worker_clone_and_leaves_it_alone(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    clone(vcenter, "worker01", "worker01-test")
    with machine(vcenter, "worker01") as one, machine(vcenter, "worker01-test") as copy:
        assert [each.value for each in copy.ref.customValue] == [each.value for each in one.ref.customValue]
        assert copy.ref.config.instanceUuid != one.ref.config.instanceUuid
    vcenter.clear()
    again = ansible.module("worker_vm", **desired(1))
    assert (again.rc, again.changed, vcenter.writes()) == (0, False, []), again.out
    assert "worker01-test is a copy of it" in warnings(again)
    left = ansible.module("worker_vm", **ABSENT, workers=[{"name": "worker01-test"}])
    assert (left.changed, vcenter.writes()) == (False, []) and "left alone" in warnings(left)


def test_refuses_a_worker_and_copy_with_swapped_names(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    clone(vcenter, "worker01", "copy")
    rename(vcenter, "worker01", "old")
    rename(vcenter, "copy", "worker01")
    vcenter.clear()
    refused = ansible.module("worker_vm", **desired(1))
    assert refused.rc == 1 and vcenter.writes() == []
    assert "worker01: could not take one virtual machine as the worker" in refused.msg
    assert "old (vm-" in refused.msg and "worker01 (vm-" in refused.msg
    info = ansible.module("worker_vm_info", cluster="gpu")
    assert "clear the custom attribute dml.vsphere.worker of those that are not the worker" in info.msg


def test_adopts_a_restored_backup_under_the_original_name(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    clone(vcenter, "worker01", "restored")  # as a backup product does: another machine with another instance UUID
    assert ansible.module("worker_vm", **ABSENT, workers=WORKER).rc == 0
    switch(vcenter, "restored", on=True)
    vcenter.clear()
    refused = ansible.module("worker_vm", **desired(1))
    assert "worker01: could not build it: restored carries its mark" in refused.msg and vcenter.writes() == []
    rename(vcenter, "restored", "worker01")
    unconfirmed = ansible.module("worker_vm", **desired(1, power_cycle=True))
    assert "it was restored from a backup" in unconfirmed.msg
    taken = ansible.module("worker_vm", **desired(1, power_cycle=True), adopt=True)
    assert taken.rc == 0 and names(vcenter) == ["debian-12", "worker01"], taken.out
    with machine(vcenter, "worker01") as vm:
        assert states(taken)["worker01"]["mark"]["uuid"] == vm.ref.config.instanceUuid
