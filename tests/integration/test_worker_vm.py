"""worker_vm against the simulated data centre: four workers, a fifth, and what goes wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.workers import HOSTS, PROFILE, desired, machine, reconfigure, remove_device, states, switch

RDMA = vim.vm.device.VirtualVmxnet3Vrdma


pytestmark = pytest.mark.datacentre(text=HOSTS)


def methods(vcenter: Simulator) -> list[tuple[str, str]]:
    """The writes since the log was cleared: method and object."""
    return [(write["method"], write["name"]) for write in vcenter.writes()]


def build(vcenter: Simulator, ansible: Ansible, count: int = 4) -> None:
    done = ansible.module("worker_vm", **desired(count))
    assert done.rc == 0, done.out
    vcenter.clear()


def repaired(vcenter: Simulator, ansible: Ansible, **more: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The change that check mode shows, and the writes that make it; nothing is left to do afterwards."""
    vcenter.clear()
    shown = ansible.module("worker_vm", check=True, **desired(), **more)
    assert (shown.changed, vcenter.writes()) == (True, []), shown.out
    done = ansible.module("worker_vm", **desired(), **more)
    assert done.rc == 0, done.out
    assert done.result["diff"] == shown.result["diff"]
    written = methods(vcenter)
    assert not ansible.module("worker_vm", **desired(), **more).changed
    (diff,) = shown.result["diff"]
    return {key: (diff["before"][key], diff["after"][key]) for key in diff["after"]}, written


def test_second_run_changes_nothing_and_check_mode_agrees(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("worker_vm", check=True, **desired())
    assert (planned.changed, vcenter.writes()) == (True, [])
    built = ansible.module("worker_vm", **desired())
    assert built.rc == 0, built.out
    assert built.result["diff"] == planned.result["diff"]
    counted = [method for method, _name in methods(vcenter) if method != "AddCustomFieldDef"]
    assert sorted(set(counted)) == ["CloneVM_Task", "PowerOnVM_Task", "ReconfigVM_Task", "SetField"]
    assert all(counted.count(method) == 4 for method in set(counted))
    vcenter.clear()
    for check in (True, False):
        again = ansible.module("worker_vm", check=check, **desired())
        assert (again.rc, again.changed, vcenter.writes()) == (0, False, []), again.out


def test_worker_has_the_requested_settings(vcenter: Simulator, ansible: Ansible) -> None:
    build(vcenter, ansible, 1)
    with machine(vcenter, "worker01") as vm:
        config = vm.ref.config
        devices = config.hardware.device
        (vgpu,) = [one for one in devices if isinstance(one, vim.vm.device.VirtualPCIPassthrough)]
        (rdma,) = [one for one in devices if isinstance(one, RDMA)]
        extra = {one.key: one.value for one in config.extraConfig}
        assert (vgpu.backing.vgpu, vgpu.key >= 13000) == (PROFILE, True)
        assert (rdma.deviceProtocol, rdma.key >= 4000) == ("rocev2", True)
        assert isinstance(rdma.backing, vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo)
        assert (config.hardware.numCPU, config.hardware.numCoresPerSocket, config.hardware.memoryMB) == (8, 4, 16384)
        assert (config.memoryReservationLockedToMax, config.memoryAllocation.reservation) == (True, 16384)
        assert extra["pciPassthru.64bitMMIOSizeGB"] == "32"
        assert "dml.vsphere.building" not in extra
        assert vm.ref.guest.ipAddress == "10.0.1.1"
        uuid = vm.ref.config.instanceUuid
    state = states(ansible.module("worker_vm", **desired(1)))["worker01"]
    owned = {"built": True, "cluster": "gpu", "name": "worker01", "role": "worker", "tenant": "", "uuid": uuid}
    assert state["mark"] == owned
    assert state["guest"]["metadata"]["network"]["ethernets"]["rdma0"]["addresses"] == ["10.216.1.1/24"]


def test_restores_a_lost_nic(vcenter: Simulator, ansible: Ansible) -> None:
    build(vcenter, ansible)
    switch(vcenter, "worker02", on=False)
    remove_device(vcenter, "worker02", RDMA)
    changes, written = repaired(vcenter, ansible)
    assert changes["rdma_nics"][0] == [] and changes["power"] == ("off", "on")
    assert "guest" not in changes
    assert written == [("ReconfigVM_Task", "worker02"), ("PowerOnVM_Task", "worker02")]


def test_restores_a_profile_changed_by_hand(vcenter: Simulator, ansible: Ansible) -> None:
    build(vcenter, ansible)
    switch(vcenter, "worker03", on=False)
    remove_device(vcenter, "worker03", vim.vm.device.VirtualPCIPassthrough)
    other = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu="grid_t4-4c")
    device = vim.vm.device.VirtualPCIPassthrough(key=-1, backing=other)
    reconfigure(vcenter, "worker03", deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=device)])
    switch(vcenter, "worker03", on=True)
    changes, written = repaired(vcenter, ansible, power_cycle=True)
    assert changes == {"gpus": (["grid_t4-4c"], [PROFILE])}
    assert written[1:] == [("ReconfigVM_Task", "worker03"), ("PowerOnVM_Task", "worker03")]
