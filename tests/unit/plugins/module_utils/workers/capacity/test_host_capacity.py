"""The resources that a host offers: service, memory, vGPU slots, GPUs in passthrough."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.workers.capacity import host_capacity
from tests.fakes import hardware
from tests.fakes.hardware import BRIDGE, MELLANOX, NETWORK, NIC, NVSWITCH, T4, graphics, host


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, ""),
        ({"runtime__connectionState": "notResponding"}, "notResponding"),
        ({"runtime__inMaintenanceMode": True}, "maintenance"),
        ({"runtime__inQuarantineMode": True}, "quarantine"),
        ({"runtime__connectionState": "disconnected", "runtime__inMaintenanceMode": True}, "disconnected"),
    ],
)
def test_a_host_out_of_service_reports_the_reason(values: dict[str, Any], why: str) -> None:
    there = host(**values)
    assert host_capacity.out_of_service(there) == why
    assert host_capacity.in_service(there) == (why == "")


def test_host_never_reached_offers_nothing() -> None:
    bare = {"name": "esx1", "runtime.connectionState": "disconnected"}
    assert (host_capacity.memory_mb(bare), host_capacity.offered(bare), host_capacity.slots(bare, {}).gpus) == (
        0,
        set(),
        (),
    )


def test_assigns_vgpus_to_the_gpu_vcenter_names() -> None:
    two = host(config__graphicsInfo=[graphics("a", "vm-1"), graphics("b")])
    slots = host_capacity.slots(two, {"vm-1": ["grid_t4-8c"]})
    assert [gpu.used for gpu in slots.gpus] == [("grid_t4-8c",), ()]
    assert slots.free("grid_t4-8c") == 3


def test_vgpu_without_a_named_gpu_takes_a_slot() -> None:
    slots = host_capacity.slots(host(), {"vm-1": ["grid_t4-8c"]})
    assert (slots.free("grid_t4-8c"), slots.free("grid_t4-16c")) == (1, 0)


@pytest.mark.parametrize("kind", ["basic", "shared", "direct"])
def test_gpu_without_direct_sharing_has_no_slots(kind: str) -> None:
    slots = host_capacity.slots(host(config__graphicsInfo=[graphics(graphicsType=kind)]), {})
    assert (slots.gpus, slots.free("grid_t4-16c")) == ((), 0)


def test_estimates_unreported_memory_from_the_largest_profile() -> None:
    slots = host_capacity.slots(host(config__graphicsInfo=[graphics(memorySizeInKB=0)]), {})
    assert slots.free("grid_t4-8c") == 2


def test_mixes_sizes_only_if_the_gpu_allows() -> None:
    mixed = host(config__graphicsInfo=[graphics(T4, "vm-1", vgpuMode="mixedSize")])
    profiles = ["grid_t4-4c", "grid_t4-8c", "grid_t4-16c"]
    for there, free in ((mixed, 1), (host(), 0)):
        assert (
            host_capacity.slots({**there, "config.sharedPassthruGpuTypes": profiles}, {"vm-1": ["grid_t4-4c"]}).free(
                "grid_t4-8c"
            )
            == free
        )


@pytest.mark.parametrize(("mode", "free"), [("multiInstanceGpu", (2, 3)), ("sameSize", (4, 6)), (None, (4, 6))])
def test_gpu_in_mig_mode_offers_only_mig_profiles(mode: str | None, free: tuple[int, int]) -> None:
    profiles = ["grid_a100-40c", "grid_a100-20c", "grid_a100-2-10c"]
    cards = [graphics("a", vgpuMode=mode), graphics("b", vgpuMode="sameSize")]
    for card in cards:
        card.deviceName, card.memorySizeInKB = "NVIDIA A100-PCIE-40GB", 40 * hardware.GIGABYTE_IN_KB
    two = host(config__graphicsInfo=cards, config__sharedPassthruGpuTypes=profiles)
    slots = host_capacity.slots(two, {})
    assert (slots.free("grid_a100-20c"), slots.free("grid_a100-2-10c")) == free
    assert (slots.total("grid_a100-20c"), slots.total("grid_a100-2-10c")) == free
    assert mode != "multiInstanceGpu" or slots.take_all(["grid_a100-40c", "grid_a100-40c"]) is None


def whole(*devices: Any, **more: Any) -> dict[str, Any]:
    passed = [hardware.passthrough_of(one.id) for one in devices]
    values = {"config__graphicsInfo": [], "hardware__pciDevice": list(devices), "config__pciPassthruInfo": passed}
    return host(**{**values, **more})


def test_passthrough_devices_are_gpus_not_all_nvidia_devices() -> None:
    devices = [
        hardware.pci_device(),
        hardware.pci_device("0000:3b:00.1", 0x10F8, 0x0403),
        hardware.pci_device(NVSWITCH, 0x1AF1, BRIDGE),
        hardware.pci_device(NIC, 0x1019, NETWORK, MELLANOX),
    ]
    assert [one.address for one in host_capacity.whole_gpus(whole(*devices), {})] == [T4]


def test_reports_kind_label_node_holder_of_passthrough_gpus() -> None:
    numa = hardware.numa([NIC], [T4])
    labelled = [hardware.passthrough_of(label="gold")]
    values = whole(hardware.pci_device(), config__pciPassthruInfo=labelled, hardware__numaInfo=numa)
    (found,) = host_capacity.whole_gpus(values, {T4: "w1"})
    assert (found.kind, found.label, found.node, found.holder) == ("10de:1eb8", "gold", 1, "w1")


def test_counts_pending_passthrough_only_on_request() -> None:
    waiting = whole(hardware.pci_device(), config__pciPassthruInfo=[hardware.passthrough_of(active=False)])
    assert host_capacity.whole_gpus(waiting, {}) == ()
    assert len(host_capacity.whole_gpus(waiting, {}, active=False)) == 1


def test_ids_from_0x8000_on_are_not_negative() -> None:
    (found,) = host_capacity.whole_gpus(whole(hardware.pci_device(kind=0x9ABC)), {})
    assert found.kind == "10de:9abc"


def test_prefers_reported_memory_over_that_of_the_model() -> None:
    assert host_capacity.gpu_memory_gb(whole(hardware.pci_device()), T4) == 16
    assert host_capacity.gpu_memory_gb(whole(hardware.pci_device(), config__graphicsInfo=[graphics()]), T4) == 15
    assert host_capacity.gpu_memory_gb(whole(hardware.pci_device(kind=0x1)), T4) is None


def test_places_the_rdma_nic_on_its_uplinks_node() -> None:
    values = host(hardware__numaInfo=hardware.numa([T4], [NIC]), **hardware.rdma_nic(NIC))
    assert host_capacity.rdma_nodes(values) == (1,)
    both = {
        **hardware.rdma_nic(NIC),
        "config__network__rdmaDevice": hardware.rdma_nic(NIC)["config__network__rdmaDevice"] * 2,
    }
    assert host_capacity.rdma_nodes(host(hardware__numaInfo=hardware.numa([T4], [NIC]), **both)) == (1,)
    assert host_capacity.rdma_nodes(host(**hardware.rdma_nic(NIC))) == ()


def bound(vm: str, address: str | None) -> Any:
    return SimpleNamespace(vm=vim.VirtualMachine(vm), instanceId="1", pciId=address)


def test_prefers_bindings_over_the_driver_for_gpu_users() -> None:
    other = "0000:AF:00.0"
    infos = [hardware.graphics(T4, "vm-1", "vm-2"), hardware.graphics(other, "vm-3")]
    bindings = [bound("vm-1", other.lower()), bound("vm-1", other), bound("vm-2", None), bound("vm-3", "0000:af:00.4")]
    found = host_capacity.users(host(config__graphicsInfo=infos, config__assignableHardwareBinding=bindings))
    assert found == {T4: ["vm-2"], other: ["vm-1", "vm-1", "vm-3"]}


def test_reads_bindings_only_where_they_name_gpus() -> None:
    assert host_capacity.binding_paths((9, 0, 0, 0)) == ()
    assert host_capacity.binding_paths((9, 1, 0, 0)) == ("config.assignableHardwareBinding",)


def test_places_vgpus_on_the_gpus_of_their_bindings() -> None:
    infos = [hardware.graphics(T4, "vm-1"), hardware.graphics("0000:af:00.0")]
    values = host(config__graphicsInfo=infos, config__assignableHardwareBinding=[bound("vm-1", "0000:af:00.0")])
    assert [gpu.used for gpu in host_capacity.slots(values, {"vm-1": ["grid_t4-8c"]}).gpus] == [(), ("grid_t4-8c",)]


@pytest.mark.parametrize(
    ("version", "paths"), [((8, 0, 0, 0), 0), ((8, 0, 0, 1), 1), ((7, 0, 3, 0), 0), ((9, 1, 0, 0), 1)]
)
def test_reads_device_classes_only_from_servers_with_them(version: tuple[int, ...], paths: int) -> None:
    assert len(host_capacity.class_paths(version)) == paths
