"""The hosts of a cluster as input of the placement planner."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.workers import candidate_hosts
from plugins.module_utils.workers.candidate_hosts import OtherMachines
from plugins.module_utils.workers.capacity.server_capacity import Capacity
from plugins.module_utils.workers.placement.place import Demand, DeviceRequest
from tests.fakes import hardware
from tests.fakes.hardware import NIC, T4, graphics
from tests.fakes.worker_cluster import groups_of, machine

BARE = {"config__graphicsInfo": [graphics(graphicsType="basic")], "config__sharedPassthruGpuTypes": []}


def gpus_passed(*kinds: int, **more: Any) -> dict[str, Any]:
    """Return a host with GPUs of these kinds in passthrough."""
    devices = [hardware.pci_device(f"0000:{number:02x}:00.0", kind) for number, kind in enumerate(kinds)]
    passed = [hardware.passthrough_of(one.id, **more) for one in devices]
    return hardware.host(config__graphicsInfo=[], hardware__pciDevice=devices, config__pciPassthruInfo=passed)


def test_resources_of_other_machines_are_not_free() -> None:
    others = OtherMachines([machine("v1", hardware.vgpu("grid_t4-8c")), machine("v2")], ("w9",))
    found = candidate_hosts.host_for_planner(hardware.host(), others, ["a group"])
    assert (found.name, found.in_service, found.threads, found.workers) == ("esx1", True, 32, ("w9",))
    assert found.free_mb == 65536 - 2 * 8192
    assert (found.slots.free("grid_t4-8c"), found.holders, found.groups) == (1, (("v1", "grid_t4-8c"),), ("a group",))


def test_linked_vgpus_of_other_machines_use_slots() -> None:
    linked = groups_of(machine("v1", hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1)), pair=1)
    found = candidate_hosts.host_for_planner(hardware.host(), OtherMachines([linked]))
    assert (found.slots.free("grid_t4-8c"), len(found.holders)) == (0, 2)


@pytest.mark.parametrize(
    "device", [hardware.passed(T4.upper()), hardware.passed_any(assigned=T4), hardware.passed_any(assigned=T4.upper())]
)
def test_finds_passthrough_gpu_holders_with_any_backing(device: Any) -> None:
    values = hardware.host(
        config__graphicsInfo=[],
        hardware__pciDevice=[hardware.pci_device()],
        config__pciPassthruInfo=[hardware.passthrough_of()],
    )
    assert candidate_hosts.host_for_planner(values, OtherMachines([machine("v1", device)])).devices[0].holder == "v1"
    assert candidate_hosts.host_for_planner(values, OtherMachines()).devices[0].holder == ""


def test_reads_numa_nodes_of_gpus_and_rdma_nic() -> None:
    values = hardware.host(hardware__numaInfo=hardware.numa([NIC], [T4]), **hardware.rdma_nic())
    found = candidate_hosts.host_for_planner(values, OtherMachines())
    assert (found.nodes, found.nic_nodes) == (((T4, 1),), (0,))


def test_host_to_be_prepared_offers_its_gpus_profiles() -> None:
    later = candidate_hosts.prepared_host(hardware.host(**BARE), ["grid_t4-16c", "grid_a100-40c", "no profile"])
    found = candidate_hosts.host_for_planner(later, OtherMachines())
    assert (found.slots.offered, found.slots.free("grid_t4-16c")) == (("grid_t4-16c",), 1)
    assert candidate_hosts.host_for_planner(hardware.host(**BARE), OtherMachines()).slots.free("grid_t4-16c") == 0


def test_counts_gpus_for_passthrough_after_the_preparation() -> None:
    values = gpus_passed(0x20F1, active=False)
    assert candidate_hosts.host_for_planner(values, OtherMachines()).devices == ()
    assert (
        len(candidate_hosts.host_for_planner(candidate_hosts.prepared_host(values, []), OtherMachines()).devices) == 1
    )


@pytest.mark.parametrize(
    ("values", "demand", "lacks"),
    [
        (hardware.host(), Demand(("grid_t4-16c",)), False),
        (hardware.host(), Demand(("grid_a100-40c",)), True),
        (hardware.host(config__graphicsInfo=[graphics(graphicsType="shared")]), Demand(("grid_t4-16c",)), True),
        (hardware.host(**BARE), Demand(), False),
        (gpus_passed(0x20F1), Demand(devices=(DeviceRequest("10de:20f1"),)), False),
        (gpus_passed(0x20F1, active=False), Demand(devices=(DeviceRequest("10de:20f1"),)), True),
    ],
)
def test_a_host_lacks_gpus_until_they_are_prepared(values: Any, demand: Demand, lacks: bool) -> None:
    assert candidate_hosts.lacks_gpus(values, demand) == lacks


def test_reads_the_memory_of_a_requested_gpu() -> None:
    there = [gpus_passed(), gpus_passed(0x20F1)]
    assert candidate_hosts.gpu_memory_gb(there, DeviceRequest("10de:20f1")) == 40
    assert candidate_hosts.gpu_memory_gb([], DeviceRequest("10de:1eb8")) == 16
    assert candidate_hosts.gpu_memory_gb(there, DeviceRequest("10de:0001")) is None
    waiting = [gpus_passed(0x20F1, active=False)]
    assert candidate_hosts.gpu_memory_gb(waiting, DeviceRequest(address="0000:00:00.0")) == 40


def test_label_selects_the_kinds_that_have_it() -> None:
    labelled = gpus_passed(0x20F1, 0x20F1, 0x1EB8, label="gold")
    assert candidate_hosts.kinds_of([labelled, gpus_passed(0x2330)], "gold") == ["10de:20f1", "10de:1eb8"]


def test_reserves_slots_and_frees_those_of_placed_machines() -> None:
    placed = [machine("w1", hardware.vgpu("grid_t4-8c"))]
    counted = {"grid_t4-8c": Capacity(1, 0, 2, 1), "grid_t4-16c": Capacity(0, 0, 1, 0)}
    found = candidate_hosts.host_for_planner(hardware.host(), OtherMachines(placed=placed, counted=counted))
    assert (found.slots.free("grid_t4-8c"), found.holders) == (1, (("a reservation", "grid_t4-8c"),))
    later = candidate_hosts.prepared_host(hardware.host(**BARE), ["grid_t4-8c"])
    assert candidate_hosts.host_for_planner(later, OtherMachines(counted=counted)).holders == ()
