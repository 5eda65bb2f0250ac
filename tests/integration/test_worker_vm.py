"""worker_vm against the simulated data centre: four workers, a fifth, and what goes wrong with them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import custom_fields
from plugins.module_utils.workers import worker_power
from tests.integration.ansible import Ansible
from tests.integration.workers import (
    DEFAULTS,
    HOSTS,
    PROFILE,
    TEMPLATE,
    desired,
    machine,
    move,
    reconfigure,
    remove_device,
    states,
    switch,
    worker,
)

RDMA = vim.vm.device.VirtualVmxnet3Vrdma


@pytest.fixture
def place(start: Callable[..., Simulator]) -> Simulator:
    return start(text=HOSTS)


@pytest.fixture
def ansible(place: Simulator, ansible_for: Callable[[Simulator], Ansible]) -> Ansible:
    return ansible_for(place)


def methods(place: Simulator) -> list[tuple[str, str]]:
    """The writes since the log was cleared: method and object."""
    return [(write["method"], write["name"]) for write in place.writes()]


def build(place: Simulator, ansible: Ansible, count: int = 4) -> None:
    done = ansible.module("worker_vm", **desired(count))
    assert done.rc == 0, done.out
    place.clear()


def repaired(place: Simulator, ansible: Ansible, **more: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The change that check mode shows, and the writes that make it; nothing is left to do afterwards."""
    place.clear()
    shown = ansible.module("worker_vm", check=True, **desired(), **more)
    assert (shown.changed, place.writes()) == (True, []), shown.out
    done = ansible.module("worker_vm", **desired(), **more)
    assert done.rc == 0, done.out
    assert done.result["diff"] == shown.result["diff"]
    written = methods(place)
    assert not ansible.module("worker_vm", **desired(), **more).changed
    (diff,) = shown.result["diff"]
    return {key: (diff["before"][key], diff["after"][key]) for key in diff["after"]}, written


def test_second_run_changes_nothing_and_check_mode_agrees(place: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("worker_vm", check=True, **desired())
    assert (planned.changed, place.writes()) == (True, [])
    built = ansible.module("worker_vm", **desired())
    assert built.rc == 0, built.out
    assert built.result["diff"] == planned.result["diff"]
    counted = [method for method, _name in methods(place) if method != "AddCustomFieldDef"]
    assert sorted(set(counted)) == ["CloneVM_Task", "PowerOnVM_Task", "ReconfigVM_Task", "SetField"]
    assert all(counted.count(method) == 4 for method in set(counted))
    place.clear()
    for check in (True, False):
        again = ansible.module("worker_vm", check=check, **desired())
        assert (again.rc, again.changed, place.writes()) == (0, False, []), again.out


def test_worker_has_the_requested_settings(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible, 1)
    with machine(place, "worker01") as vm:
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


def test_adding_a_fifth_worker_changes_only_the_fifth(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible)
    fifth = ansible.module("worker_vm", **desired(5))
    assert fifth.rc == 0, fifth.out
    assert [entry["name"] for entry in fifth.result["workers"] if entry["changed"]] == ["worker05"]
    assert {name for _method, name in methods(place)} == {TEMPLATE, "worker05"}
    assert len({state["host"] for state in states(fifth).values()}) == 5


def test_restores_a_lost_nic(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible)
    switch(place, "worker02", on=False)
    remove_device(place, "worker02", RDMA)
    changes, written = repaired(place, ansible)
    assert changes["rdma_nics"][0] == [] and changes["power"] == ("off", "on")
    assert "guest" not in changes
    assert written == [("ReconfigVM_Task", "worker02"), ("PowerOnVM_Task", "worker02")]


def test_changed_profile_requires_an_allowed_power_cycle(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible)
    smaller = {**DEFAULTS, "gpus": [{"profile": "grid_t4-8c"}]}
    refused = ansible.module("worker_vm", **desired(defaults=smaller))
    assert refused.rc == 1
    assert "can change only while it is off: set power_cycle: true" in refused.msg
    assert place.writes() == []
    shown = ansible.module("worker_vm", check=True, **desired(defaults=smaller))
    assert shown.result["needs"] == ["power_off"]
    done = ansible.module("worker_vm", **desired(defaults=smaller, power_cycle=True))
    assert done.rc == 0, done.out
    assert {tuple(state["gpus"]) for state in states(done).values()} == {("grid_t4-8c",)}
    per_worker = [method for method, name in methods(place) if name == "worker01"]
    assert per_worker == ["ShutdownGuest", "ReconfigVM_Task", "PowerOnVM_Task"]
    assert not ansible.module("worker_vm", **desired(defaults=smaller)).changed


def test_restores_a_profile_changed_by_hand(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible)
    switch(place, "worker03", on=False)
    remove_device(place, "worker03", vim.vm.device.VirtualPCIPassthrough)
    other = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu="grid_t4-4c")
    device = vim.vm.device.VirtualPCIPassthrough(key=-1, backing=other)
    reconfigure(place, "worker03", deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="add", device=device)])
    switch(place, "worker03", on=True)
    changes, written = repaired(place, ansible, power_cycle=True)
    assert changes == {"gpus": (["grid_t4-4c"], [PROFILE])}
    assert written[1:] == [("ReconfigVM_Task", "worker03"), ("PowerOnVM_Task", "worker03")]


def test_starts_a_worker_that_was_powered_off(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible)
    switch(place, "worker04", on=False)
    changes, written = repaired(place, ansible)
    assert changes == {"power": ("off", "on")}
    assert written == [("PowerOnVM_Task", "worker04")]


def test_moves_a_displaced_worker_back(place: Simulator, ansible: Ansible) -> None:
    pinned = [worker(number, host=f"esx{number:02}.lab") for number in range(1, 5)]
    assert ansible.module("worker_vm", **desired(workers=pinned)).rc == 0
    move(place, "worker01", "esx05.lab")
    requested = desired(workers=pinned)
    place.clear()
    shown = ansible.module("worker_vm", check=True, **requested)
    (diff,) = shown.result["diff"]
    assert (diff["before"], diff["after"]) == ({"host": "esx05.lab"}, {"host": "esx01.lab"})
    done = ansible.module("worker_vm", **requested)
    assert done.rc == 0, done.out
    assert methods(place) == [("RelocateVM_Task", "worker01")]
    assert states(done)["worker01"]["host"] == "esx01.lab"


def test_separates_two_workers_on_one_host(place: Simulator, ansible: Ansible) -> None:
    half = {**DEFAULTS, "gpus": [{"profile": "grid_t4-8c"}]}
    both = [worker(1, host="esx01.lab"), worker(2, host="esx01.lab")]
    together = ansible.module("worker_vm", **desired(defaults=half, workers=both, one_per_host=False))
    assert together.rc == 0, together.out
    assert {state["host"] for state in states(together).values()} == {"esx01.lab"}
    refused = ansible.module("worker_vm", **desired(2, defaults=half))
    assert refused.rc == 1 and "allow_moves: true permits" in refused.msg
    apart = ansible.module("worker_vm", **desired(2, defaults=half), allow_moves=True)
    assert apart.rc == 0, apart.out
    assert len({state["host"] for state in states(apart).values()}) == 2


def test_does_not_overwrite_a_concurrent_foreign_change(place: Simulator, ansible: Ansible) -> None:
    build(place, ansible, 1)
    place.fault("ReconfigVM_Task", "task_fails", fault="ConcurrentAccess", name="worker01")
    failed = ansible.module("worker_vm", **desired(1, defaults={**DEFAULTS, "annotation": "mine"}))
    assert failed.rc == 1
    assert "another client changed the VM meanwhile" in failed.msg


def test_next_run_continues_after_an_unmarked_clone(place: Simulator, ansible: Ansible) -> None:
    place.fault("SetField", "drop", count=-1)
    assert ansible.module("worker_vm", **desired(1)).rc == 1
    place.heal()
    place.clear()
    done = ansible.module("worker_vm", **desired(1))
    assert done.rc == 0, done.out
    assert "CloneVM_Task" not in [method for method, _name in methods(place)]
    assert states(done)["worker01"]["mark"]["built"]
    assert not ansible.module("worker_vm", **desired(1)).changed


def test_next_run_writes_a_mark_the_server_ignored(
    place: Simulator, ansible: Ansible, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom_fields, "KEPT_SECONDS", 0.6)
    place.fault("SetField", "deaf")
    deaf = ansible.module("worker_vm", **desired(1))
    assert deaf.rc != 0 and "worker01: could not write its custom attribute dml.vsphere.worker" in deaf.msg
    mended = ansible.module("worker_vm", **desired(1))
    assert mended.rc == 0, mended.out
    assert not ansible.module("worker_vm", **desired(1)).changed


def test_reports_a_server_that_ignores_power_on_quickly(
    place: Simulator, ansible: Ansible, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_power, "ON_SECONDS", 1)
    place.fault("PowerOnVM_Task", "deaf")
    began = time.monotonic()
    deaf = ansible.module("worker_vm", **desired(1, address_timeout=600))
    assert deaf.rc != 0 and time.monotonic() - began < 120
    assert "worker01: could not power it on: the server accepted it, yet the power is 'off'" in deaf.msg
    assert ansible.module("worker_vm", **desired(1)).rc == 0
