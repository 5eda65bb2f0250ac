"""The room, links, stuns and rules of a cluster, as the planner of waves gets them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Refused
from plugins.module_utils.moves.move import moving_fleet, rolling_moves
from plugins.module_utils.moves.plan.fleet import Fleet
from plugins.module_utils.moves.plan.plan import Move
from plugins.module_utils.moves.plan.waves import plan_waves
from tests.fakes import hardware
from tests.fakes.esxi import FakeHost
from tests.fakes.moves import FakeServer, site_of
from tests.fakes.network import Card, FakeNetwork, Switch, Vmk
from tests.fakes.worker_cluster import groups_of, machine


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    return FakeServer(monkeypatch)


def fleet_of(server: FakeServer, *workers: Any, one_per_host: bool = False, **more: Any) -> Fleet:
    cluster = site_of(server, *workers, **more)
    read = rolling_moves.read_workers(cluster, [one.name for one in workers])
    return moving_fleet.read_fleet(cluster, read, moving_fleet.FleetLimits(60.0, one_per_host))


def test_fleet_has_needs_and_stuns_of_workers(server: FakeServer) -> None:
    fleet = fleet_of(server, machine("w1", hardware.vgpu()), machine("v1", host="host-2"), hosts=3)
    worker = fleet.workers["w1"]
    assert (worker.needs, worker.targets, worker.alone) == ((1, 8192, 0), {"esx1", "esx2", "esx3"}, True)
    assert worker.stun_s == {"esx1": 48.0, "esx2": 48.0, "esx3": 48.0}
    plain = fleet.workers["v1"]
    assert (plain.alone, set(plain.stun_s.values())) == (False, {moving_fleet.SECONDS_WITHOUT_VGPU})
    assert fleet.budget_s == 60.0


def test_host_has_the_room_other_machines_leave(server: FakeServer) -> None:
    fleet = fleet_of(server, machine("w1", hardware.vgpu()), running=[machine("v1", host="host-2")], hosts=2)
    assert fleet.hosts["esx1"].has == (1, 65536, 32000)
    assert fleet.hosts["esx2"].has == (1, 65536 - 8192, 32000)
    assert fleet.hosts["esx1"].moves == 1, "the speed of its link is unknown"


def linked(**speeds: int) -> FakeNetwork:
    cards = [Card(name, megabits=speed) for name, speed in speeds.items()]
    switch = Switch("vSwitch0", [card.device for card in cards], distributed=False)
    vmks = [Vmk("vmk0", "vSwitch0", services=("management",)), Vmk("vmk1", "vSwitch0", services=("vmotion",))]
    return FakeNetwork(cards, [switch], vmks)


@pytest.mark.parametrize(
    ("network", "megabits"),
    [
        (linked(vmnic0=25_000, vmnic1=10_000), 10_000),
        (linked(vmnic0=25_000, vmnic1=0), 25_000),
        (linked(vmnic0=0), None),
        (FakeNetwork(), None),
    ],
    ids=["the slowest", "connected", "no link", "no vmotion service"],
)
def test_link_is_the_slowest_connected_vmotion_uplink(network: FakeNetwork, megabits: int | None) -> None:
    host = FakeHost()
    network.on(host)
    host.refresh()
    assert moving_fleet.vmotion_megabits(host) == megabits


def rules() -> Any:
    """A rule that keeps w1 and w2 apart, and one that keeps w2 on esx1, esx2 and esx3."""
    refs = [vim.VirtualMachine("vm-w1"), vim.VirtualMachine("vm-w2"), vim.VirtualMachine("vm-else")]
    apart = vim.cluster.AntiAffinityRuleSpec(name="apart", enabled=True, vm=refs)
    on = vim.cluster.VmHostRuleInfo(
        name="on", enabled=True, mandatory=True, vmGroupName="vms", affineHostGroupName="hosts"
    )
    hosts = [vim.HostSystem(f"host-{number}") for number in (1, 2, 3)]
    groups = [vim.cluster.VmGroup(name="vms", vm=refs[1:2]), vim.cluster.HostGroup(name="hosts", host=hosts)]
    return vim.cluster.ConfigInfoEx(rule=[apart, on], group=groups)


def test_rules_of_the_cluster_bind_the_workers(server: FakeServer) -> None:
    server.values["configurationEx"] = rules()
    fleet = fleet_of(server, machine("w1"), machine("w2", host="host-2"), hosts=4)
    assert fleet.apart == (frozenset({"w1", "w2"}),)
    assert fleet.workers["w1"].targets == {"esx1", "esx2", "esx3", "esx4"}
    assert fleet.workers["w2"].targets == {"esx1", "esx2", "esx3"}
    plan = [Move("w1", "esx1", "esx3"), Move("w2", "esx2", "esx3")]
    assert [len(wave.moves) for wave in plan_waves(fleet, plan, {"w1": "esx1", "w2": "esx2"}, 2)] == [2]
    assert all(math.isfinite(stun or 0) for worker in fleet.workers.values() for stun in worker.stun_s.values())


def emptied(server: FakeServer, *workers: Any, hosts: list[str], cluster_hosts: int, **more: Any) -> list[str]:
    """Return the targets of the moves that empty these hosts."""
    cluster = site_of(server, *workers, hosts=cluster_hosts, **more)
    read = rolling_moves.read_workers(cluster, [one.name for one in workers], None, hosts)
    room = moving_fleet.read_room(cluster, read, one_per_host=False)
    return [move.target for change in rolling_moves.plan_window(read, room, hosts) for move in change.moves]


def test_a_window_keeps_the_rules_of_the_cluster(server: FakeServer) -> None:
    server.values["configurationEx"] = rules()
    workers = machine("w1"), machine("w2", host="host-2")
    assert emptied(server, *workers, hosts=["esx2"], cluster_hosts=4) == ["esx3"]


def test_window_keeps_workers_apart_from_immovable_machines(server: FakeServer) -> None:
    server.values["configurationEx"] = rules()
    other = machine("else", host="host-2")
    assert emptied(server, machine("w1"), hosts=["esx1"], cluster_hosts=3, running=[other]) == ["esx3"]


def test_window_counts_memory_and_slots_of_immovable_machines(server: FakeServer) -> None:
    moves = machine("w1", hardware.vgpu())
    tied = machine("w2", hardware.vgpu(), hardware.sriov_card(), host="host-2")
    large = {"config__memoryAllocation__reservation": 60_000, "config__hardware__memoryMB": 60_000}
    full = machine("v1", host="host-3", **large)
    assert emptied(server, moves, tied, hosts=["esx1"], cluster_hosts=4, running=[full]) == ["esx4"]
    with pytest.raises(Refused, match=r"no other host has room for w1 on esx1 \(GPU slots, MB of memory\)"):
        emptied(server, moves, tied, hosts=["esx1"], cluster_hosts=3, running=[full])


def test_window_moves_linked_vgpus_where_the_link_exists(server: FakeServer) -> None:
    pair = "Nvidia:2@grid_t4-8c%NVLink"
    worker = groups_of(machine("w1", hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1)), **{pair: 1})
    assert emptied(server, worker, hosts=["esx1"], cluster_hosts=3, groups={"esx1": [pair], "esx3": [pair]}) == ["esx3"]
    with pytest.raises(Refused, match="w1: could not plan its move: no other host offers its linked vGPUs"):
        emptied(server, worker, hosts=["esx1"], cluster_hosts=3, groups={"esx1": [pair]})
    assert emptied(server, worker, hosts=["esx2"], cluster_hosts=3, groups={"esx1": [pair]}) == []


def test_a_window_empties_hosts_of_several_profiles(server: FakeServer) -> None:
    small = [machine(f"s{number}", hardware.vgpu("grid_t4-8c"), host="host-1") for number in (1, 2)]
    large = machine("large", hardware.vgpu("grid_t4-16c"), host="host-2")
    assert emptied(server, *small, large, hosts=["esx1", "esx2"], cluster_hosts=3) == ["esx3", "esx2", "esx2"]
    with pytest.raises(Refused, match=r"has room for large on esx2 \(GPUs for grid_t4-16c on esx1\)"):
        emptied(server, small[0], large, hosts=["esx2"], cluster_hosts=2)


def test_a_worker_that_stays_keeps_its_gpu(server: FakeServer) -> None:
    """Two small vGPUs on one GPU leave the other one free: it is known, as they do not move."""
    small = [machine(f"s{number}", hardware.vgpu("grid_t4-8c"), host="host-1") for number in (1, 2)]
    large = machine("large", hardware.vgpu("grid_t4-16c"), host="host-2")
    first = hardware.graphics(hardware.T4, "vm-s1", "vm-s2")
    gpus = {"config__graphicsInfo": [first, hardware.graphics(hardware.NVSWITCH)]}
    cluster = site_of(server, *small, large, hosts=2, **gpus)
    read = rolling_moves.read_workers(cluster, ["s1", "s2", "large"], ["large"])
    fleet = moving_fleet.read_serving(cluster, read, one_per_host=False)
    moves = rolling_moves.plan_moves(read, ["large"], return_home=False, one_per_host=False)
    assert rolling_moves.keep_rules(fleet, moves, read.at, return_home=False) == [Move("large", "esx2", "esx1")]
    read = rolling_moves.read_workers(cluster, ["s1", "s2", "large"])
    fleet = moving_fleet.read_serving(cluster, read, one_per_host=False)
    with pytest.raises(Refused, match="large -> esx1: esx1 may have no GPU for grid_t4-16c beside its vGPUs"):
        rolling_moves.keep_rules(fleet, moves, read.at, return_home=False)
