"""The resources that virtual machines use, what keeps them on their hosts, and their owners."""

from __future__ import annotations

import pytest
from pyVmomi import vim

from plugins.module_utils.vsphere.options import extra_config
from plugins.module_utils.workers.capacity import machines
from tests.fakes import hardware
from tests.fakes.hardware import MELLANOX, NIC, T4

DVX = vim.vm.device.VirtualPCIPassthrough.DvxBackingInfo


def test_virtual_gpus_count_within_device_groups_too() -> None:
    worker = hardware.vm("w1", hardware.vgpu("grid_a100-40c", 1), hardware.vgpu("grid_a100-40c", 1), hardware.vgpu())
    assert machines.vgpus(worker) == ("grid_a100-40c", "grid_a100-40c", "grid_t4-16c")
    assert machines.fixed(worker) == ()


def test_every_host_device_prevents_moves_not_only_gpus() -> None:
    assert machines.fixed(hardware.vm("w1", hardware.passed(T4))) == (f"PCI device {T4} in passthrough",)
    assert machines.fixed(hardware.vm("w1", hardware.passed(NIC, MELLANOX))) == (f"PCI device {NIC} in passthrough",)
    assert machines.fixed(hardware.vm("w1", hardware.sriov_card())) == ("an SR-IOV network card",)
    assert machines.fixed(hardware.vm("w1")) == ()


def test_class_devices_prevent_moves_unless_the_class_moves() -> None:
    card = vim.vm.device.VirtualSriovEthernetCard(dvxBackingInfo=DVX(deviceClass="nic"))
    worker = hardware.vm("w1", vim.vm.device.VirtualPCIPassthrough(backing=DVX(deviceClass="gpu")), card)
    assert machines.device_classes(worker) == ("gpu", "nic")
    assert machines.fixed(worker, {"gpu": True, "nic": True}) == ()
    tied = "a device of class nic, for which the host reports no vMotion support"
    assert machines.fixed(worker, {"gpu": True, "nic": False}) == machines.fixed(worker, {"gpu": True}) == (tied,)
    assert len(machines.fixed(worker)) == 2


def test_names_an_unassigned_device_by_its_kind() -> None:
    assert machines.fixed(hardware.vm("w1", hardware.passed_any(label="gold"))) == (
        "PCI device 10de:1eb8 gold in passthrough",
    )
    running = hardware.vm("w1", hardware.passed_any(assigned=T4.upper()))
    assert machines.fixed(running) == (f"PCI device {T4} in passthrough",)


def test_takes_only_nvidia_devices_for_gpus() -> None:
    both = hardware.vm("w1", hardware.passed(), hardware.passed(NIC, MELLANOX), hardware.passed_any())
    assert [(one.nvidia, one.any_of_kind) for one in machines.passthrough_devices(both)] == [
        (True, False),
        (False, False),
        (True, True),
    ]


@pytest.mark.parametrize(("value", "on"), [("1", True), ("TRUE", True), ("true", True), ("yes", True), ("0", False)])
@pytest.mark.parametrize("flag", ["uvm", "debugging", "profiling"])
def test_recognizes_a_plugin_flag_in_any_spelling(flag: str, value: str, on: bool) -> None:
    key = f"pciPassthru0.cfg.enable_{flag}"
    assert machines.plugin_flags({key: value, "pciPassthru0.cfg.enable_other": "1"}) == [key] * on


def test_advanced_settings_are_text_by_key() -> None:
    assert extra_config(hardware.settings(a__b="1")) == {"a.b": "1"}
    assert extra_config(None) == {}


@pytest.mark.parametrize(
    ("key", "kind", "is_of_vcenter"),
    [
        ("com.vmware.vim.eam", "cluster-agent", True),
        ("VirtualCenter", "vcls-entity", True),
        ("com.vmware.vcDr", "placeholderVm", False),
    ],
    ids=["vCLS and agents", "vCLS from 8.0 U3 on", "of another extension"],
)
def test_recognizes_machines_of_vcenter_by_their_manager(key: str, kind: str, is_of_vcenter: bool) -> None:
    manager = vim.ext.ManagedByInfo(extensionKey=key, type=kind)
    assert machines.is_of_vcenter({"config.managedBy": manager}) is is_of_vcenter
    assert not machines.is_of_vcenter({})


@pytest.mark.parametrize(
    ("note", "owner"),
    [
        ("a worker\nOwner: team blue\n", "team blue"),
        ("owner = red", "red"),
        ("kept for the demo", "kept for the demo"),
        ("x" * 81, ""),
        (None, ""),
    ],
)
def test_the_owner_comes_from_the_annotation(note: str | None, owner: str) -> None:
    assert machines.owner_of({"config.annotation": note}) == owner


def test_the_custom_attribute_precedes_the_annotation() -> None:
    field = vim.CustomFieldsManager.FieldDef(key=7, name="Owner")
    value = vim.CustomFieldsManager.StringValue(key=7, value="team blue")
    worker = {"config.annotation": "owner: red", "availableField": [field]}
    assert machines.owner_of({**worker, "customValue": [value]}) == "team blue"
    assert machines.owner_of(worker) == "red"


@pytest.mark.parametrize(("value", "stopped"), [("TRUE", True), ("FALSE", False)])
def test_read_reports_machines_that_drs_powers_off(value: str, stopped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = hardware.settings(maintenance__vm__evacuation__poweroff=value)
    there = hardware.vm("w1", hardware.vgpu(), runtime__powerState="poweredOn", config__extraConfig=settings)
    monkeypatch.setattr(machines, "read_many", lambda _session, refs, _paths: {ref._moId: there for ref in refs})

    (read,) = machines.read(None, [vim.VirtualMachine("vm-1")], {})  # type: ignore[arg-type]

    assert read.stopped_by_drs is stopped
