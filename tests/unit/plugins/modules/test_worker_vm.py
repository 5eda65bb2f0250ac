"""The module worker_vm over a vCenter in memory: four runs, a deaf server, unknown objects, faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.fakes.workers import FakeVcenter, call

DESIRED: dict[str, Any] = {
    "defaults": {
        "template": "golden",
        "cpus": 4,
        "memory_mb": 8192,
        "gpus": [{"profile": "grid_t4-16c"}],
        "rdma_nics": [{"portgroup": "rdma-vm"}],
        "guest": {"user": "ubuntu"},
    },
    "workers": [{"name": "w1"}, {"name": "w2"}],
}

NIC = {"management_nic": {"portgroup": "rdma-vm"}}


def test_second_run_changes_nothing_and_check_mode_agrees() -> None:
    vcenter = FakeVcenter()
    planned = call(vcenter, check=True, **DESIRED)
    assert (planned["changed"], vcenter.writes) == (True, []), planned
    done = call(vcenter, **DESIRED)
    assert done["changed"], done
    assert done["diff"] == planned["diff"]
    steps = ["CloneVM_Task", "SetField", "ReconfigVM_Task", "PowerOnVM_Task"]
    for name in ("w1", "w2"):
        assert [step for step, whose in vcenter.writes if whose == name] == steps
    vcenter.writes.clear()
    for check in (True, False):
        again = call(vcenter, check=check, **DESIRED)
        assert (again["changed"], vcenter.writes) == (False, []), again


def test_each_step_reports_progress(tmp_path: Path) -> None:
    vcenter, events = FakeVcenter(), tmp_path / "events"
    events.touch()

    def progress_of(**options: Any) -> list[str]:
        events.write_text("")
        result = call(vcenter, progress_file=str(events), **options)
        assert not result.get("failed"), result
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        return [line["what"] for line in lines if line["about"] == "w1"]

    assert progress_of(**DESIRED) == [
        "is cloned from golden to host-1.lab",
        "gets its hardware",
        "is started",
        "its guest has the address 10.0.0.9",
    ]
    assert progress_of(**DESIRED) == []
    assert progress_of(state="absent", power_cycle=True, workers=DESIRED["workers"]) == ["is shut down", "is deleted"]


COMING = {"port_groups": ["rdma-vm"], "gpus": True}


def test_workers_are_planned_on_hosts_to_be_prepared() -> None:
    vcenter = FakeVcenter(bare=True)
    planned = call(vcenter, check=True, to_come=COMING, **DESIRED)
    assert (planned.get("failed"), planned["changed"], vcenter.writes) == (None, True, []), planned
    assert [one["state"]["host"] for one in planned["workers"]] == ["host-1.lab", "host-2.lab"]
    assert planned["workers"][0]["unmet"] == ["port group rdma-vm, the GPUs of host-1.lab must be prepared first"]
    prepared = call(FakeVcenter(), check=True, **DESIRED)
    assert planned["diff"] == prepared["diff"]


@pytest.mark.parametrize(
    ("coming", "check", "words"),
    [
        ({}, True, "offer"),
        ({"gpus": True}, True, "find one port group named 'rdma-vm'"),
        ({"port_groups": ["rdma-vm"]}, True, "offer"),
        ({"port_groups": ["rdma-vmk"], "gpus": True}, True, "there is none; it has rdma-vmk"),
        (COMING, False, "port group rdma-vm, the GPUs of host-1.lab must be prepared first"),
    ],
)
def test_missing_objects_are_refused(coming: dict[str, Any], check: bool, words: str) -> None:
    vcenter = FakeVcenter(bare=True)
    refused = call(vcenter, check=check, to_come=coming, **DESIRED)
    assert refused["failed"] and words in refused["msg"], refused["msg"]
    assert vcenter.writes == []


def test_refuses_a_profile_that_no_gpu_will_offer() -> None:
    desired = {**DESIRED, "defaults": {**DESIRED["defaults"], "gpus": [{"profile": "grid_a100-40c"}]}}
    refused = call(FakeVcenter(bare=True), check=True, to_come=COMING, **desired)
    assert refused["failed"] and "grid_a100-40c" in refused["msg"]


def test_the_hardware_matches_the_options() -> None:
    vcenter = FakeVcenter()
    call(vcenter, **DESIRED)
    vm = vcenter.named("w1")
    (rdma,) = [one for one in vm.devices if isinstance(one, vim.vm.device.VirtualVmxnet3Vrdma)]
    assert (vm.cpus, vm.memory, vm.locked, vm.profiles, vm.on) == (4, 8192, True, ["grid_t4-16c"], True)
    assert (rdma.deviceProtocol, rdma.backing.port.portgroupKey, rdma.addressType) == ("rocev2", "dvpg-1", "manual")
    assert vm.extra["pciPassthru.64bitMMIOSizeGB"] == "32"
    assert "dml.vsphere.building" not in vm.extra
    assert vcenter.named("w2").host != vm.host


@pytest.mark.parametrize(
    ("deaf", "words"),
    [
        ("ReconfigVM_Task", "did not apply it: cpus, "),
        ("PowerOnVM_Task", "power is 'off', not 'on'"),
        ("SetField", "could not write its custom attribute dml.vsphere.worker"),
    ],
)
def test_reports_a_server_that_ignores_changes(deaf: str, words: str) -> None:
    vcenter = FakeVcenter()
    vcenter.deaf.add(deaf)
    failed = call(vcenter, **DESIRED, wait_for_address=False)
    assert failed["failed"]
    assert "the server accepted " in failed["msg"] and ", yet " in failed["msg"]
    assert words in failed["msg"]
    vcenter.deaf.clear()
    assert call(vcenter, **DESIRED)["changed"] and not call(vcenter, **DESIRED)["changed"]


@pytest.mark.parametrize(
    ("call_name", "fault", "words"),
    [
        (
            "CloneVM_Task",
            vim.fault.NoPermission(privilegeId="VirtualMachine.Inventory.CreateFromExisting"),
            "privilege",
        ),
        ("ReconfigVM_Task", vim.fault.ConcurrentAccess(msg="changed"), "another client changed the VM meanwhile"),
        ("PowerOnVM_Task", vim.fault.InsufficientResourcesFault(msg="full"), "see which resources its host has left"),
    ],
)
def test_names_workers_and_fault_and_then_finishes(call_name: str, fault: Exception, words: str) -> None:
    vcenter = FakeVcenter()
    vcenter.faults[call_name] = fault
    failed = call(vcenter, **DESIRED)
    assert "w1, w2: could not" in failed["msg"]
    assert words in failed["msg"]
    vcenter.faults.clear()
    assert call(vcenter, **DESIRED)["changed"]
    assert not call(vcenter, **DESIRED)["changed"]


def test_server_refuses_a_stale_change() -> None:
    vcenter = FakeVcenter()
    call(vcenter, **DESIRED)
    vm, values = vcenter.named("w1"), vcenter.named("w1").values
    vm.values = lambda: {**values(), "config.changeVersion": "0"}  # type: ignore[method-assign]
    failed = call(vcenter, **{**DESIRED, "defaults": {**DESIRED["defaults"], "annotation": "new"}})
    assert "w1: could not reconfigure it: the server said ConcurrentAccess" in failed["msg"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"template": "nowhere"}, "w1, w2: vcenter.lab:443: could not find the template 'nowhere'"),
        ({"rdma_nics": [{"portgroup": "nowhere"}]}, "could not find one port group named 'nowhere'"),
        ({"gpus": [{"profile": "grid_t4-4c"}]}, "no host offers grid_t4-4c"),
        ({"folder": "nowhere"}, "could not find one folder named 'nowhere'"),
        ({"gpus": [{"device": "20f1"}]}, "'20f1' is not an NVIDIA vendor:device ID"),
        ({"gpus": [{"group": "two"}]}, "is not the name of a device group"),
        ({"template": None}, "it does not exist, and no template is set"),
        ({"host": "esx09.lab"}, "could not find esx09.lab: it has host-1.lab"),
        ({"rdma_nics": [{"protocol": "rocev2"}]}, "no port group is named"),
        ({"management_nic": {"portgroup": "VM Network", "mac": "x"}}, "'x' is not a MAC address"),
        ({"disks_gb": [0]}, "a disk cannot shrink"),
        ({"cpus": 6, "cores_per_socket": 4}, "6 CPUs are not a multiple of 4 cores"),
        ({"memory_mb": 1001}, "not a multiple of 4"),
        ({"guest": {"address": "10.0.0.1"}, **NIC}, "has no prefix length"),
        ({"guest": {"address": "10.0.0/24"}, **NIC}, "or dhcp"),
        ({"guest": {"rdma_addresses": ["10.0.0.1/24"]}}, "set management_nic as well"),
        ({"guest": {"rdma_addresses": ["10.0.0.1/24"] * 2}, **NIC}, "rdma_addresses has 2 entries and rdma_nics has 1"),
        ({"clone": "linked", "snapshot": "nowhere"}, "has no snapshot named 'nowhere'"),
        ({"memory_mb": 2_000_000}, "of memory left, but 2000000 MB are to be reserved"),
    ],
)
def test_refuses_impossible_options_and_writes_nothing(more: dict[str, Any], words: str) -> None:
    vcenter = FakeVcenter()
    refused = call(vcenter, **{**DESIRED, "defaults": {**DESIRED["defaults"], **more}})
    assert words in refused["msg"]
    assert vcenter.writes == []


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"gpu": None}, "Unsupported parameters for (basic.py) module: workers.gpu."),
        ({"cpus": "many"}, "argument 'cpus' is of type"),
        (
            {"gpus": [{"profil": "grid_t4-4c"}]},
            "one of the following is required: profile, group, device, label, device_class, address",
        ),
    ],
)
def test_names_wrong_options_of_a_worker(option: dict[str, Any], words: str) -> None:
    vcenter = FakeVcenter()
    refused = call(vcenter, **{**DESIRED, "workers": [{"name": "w1", **option}]})
    assert words in refused["msg"], refused
    assert vcenter.writes == []


def test_refuses_a_template_on_a_foreign_datastore(monkeypatch: pytest.MonkeyPatch) -> None:
    vcenter = FakeVcenter()
    cluster = {**vcenter._cluster(), "datastore": [vim.Datastore("datastore-2")]}
    monkeypatch.setattr(vcenter, "_cluster", lambda: cluster)
    refused = call(vcenter, **DESIRED)
    assert "choose its datastore: the datastore of its template is not one of cluster gpu" in refused["msg"]
    assert vcenter.writes == []


def test_refuses_two_machines_with_the_same_name() -> None:
    vcenter = FakeVcenter()
    vcenter.add("w1")
    vcenter.add("w1")
    assert "find one virtual machine named 'w1'" in call(vcenter, **DESIRED)["msg"]


def test_refuses_a_worker_name_given_twice() -> None:
    assert "named twice" in call(FakeVcenter(), workers=[{"name": "w1"}, {"name": "w1"}])["msg"]


def test_refuses_all_workers_if_hosts_are_too_few() -> None:
    vcenter = FakeVcenter(hosts=1)
    refused = call(vcenter, **DESIRED)
    assert "w2: could not find a host for it" in refused["msg"]
    assert vcenter.writes == []


def test_continues_a_clone_that_a_killed_run_left() -> None:
    vcenter = FakeVcenter()
    vcenter.add("w1").extra["dml.vsphere.building"] = "w1"
    done = call(vcenter, **DESIRED)
    assert done["workers"][0]["state"]["mark"]["built"] is True, done
    assert ("CloneVM_Task", "w1") not in vcenter.writes
    vcenter.add("w3").extra["dml.vsphere.building"] = "w1"
    foreign = call(vcenter, **{**DESIRED, "workers": [{"name": "w3"}]})
    assert "this collection did not build it" in foreign["msg"]


def test_running_workers_change_only_with_a_power_cycle() -> None:
    vcenter = FakeVcenter()
    call(vcenter, **DESIRED)
    vcenter.writes.clear()
    other = {**DESIRED, "defaults": {**DESIRED["defaults"], "gpus": [{"profile": "grid_t4-8c"}]}}
    assert "set power_cycle: true" in call(vcenter, **other)["msg"]
    assert vcenter.writes == []
    done = call(vcenter, power_cycle=True, **other)
    assert done["changed"], done
    steps = [step for step, name in vcenter.writes if name == "w1"]
    assert steps == ["PowerOffVM_Task", "ReconfigVM_Task", "PowerOnVM_Task"]
    assert vcenter.named("w1").profiles == ["grid_t4-8c"]


def test_removes_a_second_pvrdma_card() -> None:
    vcenter = FakeVcenter()
    call(vcenter, **DESIRED)
    vm = vcenter.named("w1")
    vm.on = False
    vm.devices.append(vim.vm.device.VirtualVmxnet3Vrdma(key=4009, backing=vm.devices[-1].backing))
    done = call(vcenter, **DESIRED)
    assert not done.get("failed"), done
    assert done["workers"][0]["state"]["rdma_nics"][0]["portgroup"] == "rdma-vm"


def test_absent_deletes_only_built_workers() -> None:
    vcenter = FakeVcenter()
    call(vcenter, **DESIRED)
    vcenter.add("w3")
    gone = {"state": "absent", "power_cycle": True, "workers": [{"name": name} for name in ("w1", "w2", "w3", "w4")]}
    assert call(vcenter, **gone)["changed"]
    assert {vm.name for vm in vcenter.machines} == {"golden", "w3"}
    vcenter.writes.clear()
    again = call(vcenter, **gone)
    assert (again["changed"], vcenter.writes) == (False, [])


def test_names_a_guest_without_address_after_waiting() -> None:
    vcenter = FakeVcenter()
    vcenter.silent = True
    failed = call(vcenter, **DESIRED, address_timeout=1)
    assert "w1, w2: could not wait for the address of its guest" in failed["msg"]
    assert not call(vcenter, **DESIRED, wait_for_address=False)["changed"]
