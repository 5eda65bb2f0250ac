"""The hardware of a worker: the current and the desired state, and the change between them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import NotFound, Refused
from plugins.module_utils.workers import networks, nics, sizing, worker_gpus
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.placement.place import DeviceRequest
from plugins.module_utils.workers.worker_spec import Gpu, WorkerSpec
from tests.fakes import hardware
from tests.fakes.hardware import NIC, T4
from tests.fakes.worker_cluster import (
    MANAGEMENT,
    RDMA_GROUP,
    FakeWorkerCluster,
    groups_of,
    machine,
    plain_card,
    rdma_card,
)

PAIR = "Nvidia:2@grid_t4-8c%NVLink"
KNOWN = FakeWorkerCluster().networks


def spec() -> Any:
    return vim.vm.ConfigSpec(deviceChange=[], extraConfig=[])


def operations(made: Any) -> list[tuple[str, str]]:
    return [(one.operation, type(one.device).__name__.rpartition(".")[2]) for one in made.deviceChange]


def sized(there: Machine, **given: Any) -> Any:
    made = spec()
    after = sizing.desired_size(WorkerSpec("w1", given), sizing.facts(there), 2000)
    sizing.change(made, after, there, itertools.count(-101, -1))
    return made


def test_reads_the_size_of_a_machine() -> None:
    found = sizing.facts(machine("w1", config__extraConfig=hardware.settings(numa__vcpu__maxPerVirtualNode="4")))
    assert (found["cpus"], found["memory_mb"], found["memory_reserved"], found["disks_gb"]) == (4, 8192, True, [10])
    assert (found["numa"], found["latency_sensitivity"]) == ({"vcpu.maxPerVirtualNode": "4"}, "normal")


@pytest.mark.parametrize(("locked", "reserved"), [(False, 8192), (True, 4096), (False, 0)])
def test_reports_reserved_memory_only_if_complete_and_locked(locked: bool, reserved: int) -> None:
    values = {"config__memoryReservationLockedToMax": locked, "config__memoryAllocation__reservation": reserved}
    assert sizing.facts(machine("w1", **values))["memory_reserved"] is False


def test_unmanaged_values_stay() -> None:
    made = sized(machine())
    assert (made.numCPUs, made.memoryMB, operations(made), made.extraConfig) == (None, None, [], [])


def test_memory_and_its_reservation_change_together() -> None:
    made = sized(machine(), memory_mb=16384)
    assert (made.memoryMB, made.memoryReservationLockedToMax, made.memoryAllocation.reservation) == (16384, True, 16384)
    loose = machine("w1", config__memoryReservationLockedToMax=False)
    assert sized(loose, reserve_memory=True).memoryAllocation.reservation == 8192
    assert sized(loose, memory_mb=16384).memoryReservationLockedToMax is None


def test_latency_sensitive_machine_reserves_at_least_its_cpus() -> None:
    assert sized(machine(), latency_sensitivity="high").cpuAllocation.reservation == 8000
    assert sized(machine(), latency_sensitivity="high", cpus=8).cpuAllocation.reservation == 16000
    assert (
        sized(machine("w1", config__cpuAllocation__reservation=9000), latency_sensitivity="high").cpuAllocation is None
    )


def test_adds_numa_settings_to_the_existing_ones() -> None:
    there = machine("w1", config__extraConfig=hardware.settings(numa__a="1", numa__b="2"))
    made = sized(there, numa={"b": 3})
    assert {one.key: one.value for one in made.extraConfig} == {"numa.b": "3"}


def test_disks_grow_or_are_added_but_never_shrink() -> None:
    made = sized(machine(), disks_gb=[20, 5])
    assert operations(made) == [("edit", "VirtualDisk"), ("add", "VirtualDisk")]
    grown, added = (one.device for one in made.deviceChange)
    assert (grown.capacityInKB, added.capacityInKB, added.unitNumber) == (20 * 2**20, 5 * 2**20, 1)
    with pytest.raises(Refused, match="it has 10 GB, and a disk cannot shrink"):
        sized(machine(), disks_gb=[5])


def test_leaves_the_controller_unit_free() -> None:
    made = sized(machine(), disks_gb=[10, *[1] * 8])
    assert [one.device.unitNumber for one in made.deviceChange] == [1, 2, 3, 4, 5, 6, 8, 9]


def test_counts_vgpus_passthrough_devices_and_groups_as_gpus() -> None:
    devices = [
        hardware.vgpu("grid_t4-8c", 1),
        hardware.vgpu("grid_t4-8c", 1),
        hardware.vgpu(),
        hardware.passed(T4.upper()),
        hardware.passed(NIC, hardware.MELLANOX),
        hardware.passed_any(0x20F1, label="gold"),
    ]
    found = [one.gpu for one in worker_gpus.assigned_gpus(groups_of(machine("w1", *devices), **{PAIR: 1}))]
    fixed, labelled = Gpu(device=DeviceRequest(address=T4)), Gpu(device=DeviceRequest("10de:20f1", "gold"))
    assert found == [Gpu("grid_t4-16c"), fixed, labelled, Gpu(group=PAIR)]


@pytest.mark.parametrize(
    ("settings", "window"),
    [
        ({"pciPassthru.use64bitMMIO": "TRUE", "pciPassthru.64bitMMIOSizeGB": "64"}, 64),
        ({"pciPassthru.use64bitMMIO": "1", "pciPassthru.64bitMMIOSizeGB": "64"}, 64),
        ({"pciPassthru.use64bitMMIO": "yes", "pciPassthru.64bitMMIOSizeGB": "64"}, 64),
        ({"pciPassthru.use64bitMMIO": "FALSE", "pciPassthru.64bitMMIOSizeGB": "64"}, None),
        ({"pciPassthru.64bitMMIOSizeGB": "64"}, None),
        ({"pciPassthru.use64bitMMIO": "TRUE"}, None),
    ],
)
def test_reads_the_configured_memory_window(settings: dict[str, str], window: int | None) -> None:
    assert worker_gpus.window_gb(settings) == window
    assert worker_gpus.window_gb(worker_gpus.window_options(32)) == 32


BACKINGS = worker_gpus.DeviceBackings(
    fixed=lambda address: vim.vm.device.VirtualPCIPassthrough.DeviceBackingInfo(
        id=address, deviceId="1eb8", systemId="s", vendorId=0x10DE, deviceName=""
    ),
    kinds=lambda label: ["10de:20f1"] if label == "gold" else [],
    group=lambda _name: [hardware.vgpu("grid_t4-8c", 9)] * 2,
)


def changed(there: Machine, *gpus: Gpu) -> Any:
    made = spec()
    worker_gpus.change(made, WorkerSpec("w1", {}, gpus), there, BACKINGS, itertools.count(-101, -1))
    return made


def test_gpus_that_stay_are_not_touched() -> None:
    made = changed(machine("w1", hardware.vgpu("grid_t4-8c"), hardware.vgpu("grid_t4-16c")), Gpu("grid_t4-8c"))
    assert operations(made) == [("remove", "VirtualPCIPassthrough")]
    assert made.deviceChange[0].device.backing.vgpu == "grid_t4-16c"
    assert made.deviceGroups is None


def test_devices_are_added_by_address_kind_or_label() -> None:
    kinds = (
        Gpu(device=DeviceRequest(address=T4)),
        Gpu(device=DeviceRequest("10de:1eb8")),
        Gpu(device=DeviceRequest(label="gold")),
    )
    backings = [one.device.backing for one in changed(machine(), *kinds).deviceChange]
    fixed = [one for one in backings if hasattr(one, "systemId")]
    assert [one.id for one in fixed] == [T4]
    allowed = sorted((one.allowedDevice[0].deviceId, one.customLabel) for one in backings if one not in fixed)
    assert allowed == [(0x1EB8, None), (0x20F1, "gold")]


def test_adds_a_group_with_all_devices_besides_others() -> None:
    there = groups_of(machine("w1", hardware.vgpu("grid_t4-8c", 1)), **{"Nvidia:1@grid_t4-8c": 1})
    made = changed(there, Gpu(group="Nvidia:1@grid_t4-8c"), Gpu(group=PAIR))
    named = [one.deviceGroupName for one in made.deviceGroups.deviceGroup]
    assert (named, operations(made)) == (["Nvidia:1@grid_t4-8c", PAIR], [("add", "VirtualPCIPassthrough")] * 2)
    keys = {one.device.deviceGroupInfo.groupInstanceKey for one in made.deviceChange}
    assert keys == {made.deviceGroups.deviceGroup[1].groupInstanceKey}


def test_a_removed_group_is_no_longer_named() -> None:
    made = changed(groups_of(machine("w1", hardware.vgpu("grid_t4-8c", 1)), **{PAIR: 1}))
    assert (list(made.deviceGroups.deviceGroup), operations(made)) == ([], [("remove", "VirtualPCIPassthrough")])


def carded(there: Machine, **given: Any) -> Any:
    made = spec()
    after = nics.desired_cards(
        WorkerSpec("w1", given), nics.facts(there, KNOWN), KNOWN, {"rdma_nics 0": "00:50:56:00:00:09"}
    )
    nics.change(made, after, there, KNOWN, itertools.count(-101, -1))
    return made


def test_reads_the_cards_of_a_machine() -> None:
    found = nics.facts(machine("w1", rdma_card(), plain_card(mac="00:50:56:AA:00:01")), KNOWN)
    assert found["management_nic"] == {"portgroup": MANAGEMENT, "mac": "00:50:56:aa:00:01", "connected": True}
    (rdma,) = found["rdma_nics"]
    assert (rdma["portgroup"], rdma["protocol"]) == (RDMA_GROUP, "rocev2")
    bare = nics.facts(machine("w1", hardware.sriov_card()), KNOWN)
    assert bare == {"management_nic": None, "rdma_nics": []}


def test_adds_a_pvrdma_card_with_protocol_and_address() -> None:
    (change,) = carded(machine(), rdma_nics=[{"portgroup": RDMA_GROUP}]).deviceChange
    card = change.device
    assert (change.operation, card.deviceProtocol, card.macAddress) == ("add", "rocev2", "00:50:56:00:00:09")
    assert card.backing.port.portgroupKey == "dvpg-1"


def test_a_correct_card_and_its_address_stay() -> None:
    assert operations(carded(machine("w1", rdma_card()), rdma_nics=[{"portgroup": RDMA_GROUP}])) == []
    made = carded(
        machine("w1", rdma_card(protocol="rocev1")), rdma_nics=[{"portgroup": RDMA_GROUP, "protocol": "rocev2"}]
    )
    assert (operations(made), made.deviceChange[0].device.macAddress) == (
        [("edit", "VirtualVmxnet3Vrdma")],
        "00:50:56:01:02:04",
    )


def test_pvrdma_needs_a_distributed_port_group() -> None:
    with pytest.raises(Refused, match="VM Network is on a standard switch, where PVRDMA does not work"):
        carded(machine(), rdma_nics=[{"portgroup": MANAGEMENT}])


def test_finds_a_network_or_lists_the_names() -> None:
    with pytest.raises(NotFound, match="there is none; it has VM Network, rdma-vm"):
        KNOWN.named("storage")
    twice = networks.Networks("gpu", [*KNOWN.all, *KNOWN.all])
    with pytest.raises(NotFound, match="2 networks have that name"):
        twice.named(MANAGEMENT)


def test_adds_planned_port_groups_once() -> None:
    coming = networks.to_come(KNOWN, [RDMA_GROUP, "storage"])
    assert [(one.name, one.to_come) for one in coming.all] == [
        (RDMA_GROUP, False),
        (MANAGEMENT, False),
        ("storage", True),
    ]
