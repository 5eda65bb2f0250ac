"""The workers of a cluster are sorted by whether they can move, their slots counted and their moves planned."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.moves.move import rolling_moves
from plugins.module_utils.moves.move.rolling_moves import ClusterWorkers
from plugins.module_utils.moves.plan.fleet import Fleet, HostRoom, MovingWorker
from tests.fakes import hardware
from tests.fakes.hardware import MELLANOX, NIC
from tests.fakes.worker_cluster import FakeWorkerCluster, groups_of, machine, rdma_card

PAIR = "Nvidia:2@grid_t4-8c%NVLink"


def look(*workers: Any, **site: Any) -> ClusterWorkers:
    return rolling_moves.read_workers(FakeWorkerCluster(*workers, **site), [one.name for one in workers])


def test_workers_are_sorted_by_whether_they_can_move() -> None:
    workers = look(
        machine("w1", hardware.vgpu()),
        machine("w2", hardware.vgpu(), host="host-2", on=False),
        machine("w3", hardware.passed_any(0x20F1), on=False),
    )
    assert (workers.at, workers.demand, workers.profiles) == ({"w1": "esx1"}, {"w1": 1}, ["grid_t4-16c"])
    assert (workers.off, workers.fixed) == (["w2"], {"w3": ["PCI device 10de:20f1 in passthrough"]})
    assert rolling_moves.as_dict(workers)["not_applicable"] == workers.fixed


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (hardware.passed(NIC, MELLANOX), f"PCI device {NIC} in passthrough"),
        (hardware.sriov_card(), "an SR-IOV network card"),
    ],
)
def test_does_not_move_workers_with_host_devices(device: Any, words: str) -> None:
    workers = look(machine("w1", hardware.vgpu(), device))
    assert (workers.at, workers.fixed) == ({}, {"w1": [words]})


def test_other_machines_with_a_vgpu_reduce_the_slots() -> None:
    workers = look(
        machine("w1", hardware.vgpu("grid_t4-8c")),
        hosts=3,
        running=[machine("v1", hardware.vgpu("grid_t4-8c"), host="host-2")],
    )
    assert workers.slots == {"esx1": 2, "esx2": 1, "esx3": 2}
    assert workers.targets == ["esx1", "esx2", "esx3"]


def test_avoided_hosts_take_no_worker_but_keep_theirs() -> None:
    workers = look(machine("w1", hardware.vgpu()), hosts=3)
    workers.avoided = frozenset({"esx1", "esx2"})
    assert workers.usable(one_per_host=False) == {"w1": {"esx1", "esx3"}}


def test_immovable_workers_occupy_their_slots() -> None:
    tied = machine("w2", hardware.vgpu("grid_t4-8c"), hardware.passed(NIC, MELLANOX), host="host-2")
    workers = look(machine("w1", hardware.vgpu("grid_t4-8c")), tied)
    assert (workers.at, workers.slots) == ({"w1": "esx1"}, {"esx1": 2, "esx2": 1})
    assert workers.allowed(one_per_host=True) == {"w1": {"esx1"}}
    assert workers.allowed(one_per_host=False) == {"w1": {"esx1", "esx2"}}


def test_linked_vgpus_take_one_slot_each() -> None:
    pair = machine("w1", hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1))
    second = machine("w2", hardware.vgpu("grid_t4-8c"), host="host-2")
    workers = look(groups_of(pair, **{PAIR: 1}), second, groups={"esx1": [PAIR]})
    assert (workers.demand, workers.profiles) == ({"w1": 2, "w2": 1}, ["grid_t4-8c"])
    assert workers.slots == {"esx1": 2, "esx2": 2}


def linked(hosts: int = 3, **groups: list[str]) -> ClusterWorkers:
    pair = machine("w1", hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1))
    return look(groups_of(pair, **{PAIR: 1}), hosts=hosts, groups=groups)


def test_linked_vgpus_move_only_where_the_link_exists() -> None:
    workers = linked(esx1=[PAIR], esx3=["another", PAIR])
    (move,) = rolling_moves.plan_moves(workers, ["w1"], return_home=False, one_per_host=True)
    assert move.target == "esx3"


def test_refuses_linked_vgpus_that_no_host_offers() -> None:
    workers = linked(esx1=[PAIR], esx2=["another"])
    reason = f"w1: could not plan its move: no other host offers its linked vGPUs, the device group {PAIR}"
    with pytest.raises(Refused, match=reason):
        rolling_moves.plan_moves(workers, ["w1"], return_home=False, one_per_host=True)


def test_reads_host_links_only_for_linked_workers() -> None:
    assert look(machine("w1", hardware.vgpu())).offering == {}


def test_a_host_out_of_service_accepts_no_worker() -> None:
    site = FakeWorkerCluster(machine("w1", hardware.vgpu()))
    site.hosts["host-2"]["runtime.inMaintenanceMode"] = True
    assert rolling_moves.read_workers(site, ["w1"]).targets == ["esx1"]


def test_lists_machines_with_pvrdma_with_their_hosts() -> None:
    workers = look(machine("w1", rdma_card()), running=[machine("v1", rdma_card(), host="host-2"), machine("v2")])
    assert workers.rdma == {"w1": "esx1", "v1": "esx2"}


def test_counts_the_most_slots_of_several_profiles() -> None:
    small, large = machine("w1", hardware.vgpu("grid_t4-8c")), machine("w2", hardware.vgpu(), host="host-2")
    workers = look(small, large, machine("w3", host="host-2"))
    assert (workers.profiles, workers.slots) == (["grid_t4-16c", "grid_t4-8c"], {"esx1": 4, "esx2": 4})
    assert rolling_moves.as_dict(workers)["profile"] == "grid_t4-16c, grid_t4-8c"


def test_ignores_profiles_of_powered_off_workers() -> None:
    off = machine("w2", hardware.vgpu("grid_t4-8c"), on=False)
    assert look(machine("w1", hardware.vgpu()), off).profiles == ["grid_t4-16c"]


def test_without_gpus_every_host_has_room_for_all() -> None:
    workers = look(machine("w1"), machine("w2"), hosts=3)
    assert (workers.profiles, set(workers.slots.values())) == ([], {2})


def test_selects_all_workers_or_the_named_ones() -> None:
    assert rolling_moves.select_workers("gpu", ["w2", "w1"], None) == ["w1", "w2"]
    assert rolling_moves.select_workers("gpu", ["w2", "w1"], ["w2"]) == ["w2"]
    with pytest.raises(Refused, match="cluster gpu: could not find w9: its workers are w1; correct the names"):
        rolling_moves.select_workers("gpu", ["w1"], ["w9"])
    with pytest.raises(Refused, match="cluster gpu: could not find w9: it has no workers; correct the names"):
        rolling_moves.select_workers("gpu", [], ["w9"])


def test_plan_moves_each_worker_once_and_back() -> None:
    workers = look(machine("w1", hardware.vgpu()), hosts=2)
    there = rolling_moves.plan_moves(workers, ["w1"], return_home=False, one_per_host=True)
    assert [(one.worker, one.source, one.target) for one in there] == [("w1", "esx1", "esx2")]
    both = rolling_moves.plan_moves(workers, ["w1"], return_home=True, one_per_host=True)
    assert [one.target for one in both] == ["esx2", "esx1"]


def test_names_the_reason_for_a_missing_slot() -> None:
    with pytest.raises(Refused, match="plan their moves"):
        rolling_moves.plan_moves(
            look(machine("w1", hardware.vgpu()), hosts=1), ["w1"], return_home=False, one_per_host=True
        )


def test_names_a_machine_that_took_the_slot() -> None:
    workers = look(
        machine("w1", hardware.vgpu("grid_t4-16c")),
        running=[machine("intruder", hardware.vgpu("grid_t4-16c"), host="host-2")],
    )
    taken = "other virtual machines with a vGPU run there: intruder on esx2"
    rooms = {"esx1": HostRoom((1, 0, 0)), "esx2": HostRoom((0, 0, 0))}
    room = Fleet({"w1": MovingWorker((1, 0, 0), {"esx2"})}, rooms)
    with pytest.raises(Refused, match=taken):
        rolling_moves.plan_window(workers, room, ["esx1"])
    with pytest.raises(Refused, match=taken):
        rolling_moves.plan_moves(workers, ["w1"], return_home=False, one_per_host=True)


@pytest.mark.parametrize(("room_at_home", "target"), [(1, "esx3"), (0, "esx2")])
def test_uses_spare_hosts_only_without_room_at_home(room_at_home: int, target: str) -> None:
    workers = look(machine("w1", hardware.vgpu("grid_t4-16c")), hosts=3)
    workers.spare = frozenset({"esx2"})
    rooms = {"esx1": HostRoom((1, 0, 0)), "esx2": HostRoom((1, 0, 0)), "esx3": HostRoom((room_at_home, 0, 0))}
    room = Fleet({"w1": MovingWorker((1, 0, 0), {"esx2", "esx3"})}, rooms)

    (emptied,) = rolling_moves.plan_window(workers, room, ["esx1"])

    assert [move.target for move in emptied.moves] == [target]
