"""Placement of workers: against brute force, at scale, and the reasons as text."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.workers.placement.gpu_slots import PhysicalGpu, Slots
from plugins.module_utils.workers.placement.host_room import choose, group_profiles
from plugins.module_utils.workers.placement.place import (
    IGNORE,
    PREFER,
    REQUIRE,
    Demand,
    Device,
    DeviceRequest,
    HostResources,
    Rules,
    WorkerToPlace,
    place,
)

OFFERED = ("grid_t4-16c", "grid_t4-4c", "grid_t4-8c")
A100 = "10de:20f1"
NVLINK = "Nvidia:2@grid_t4-16c%NVLink"


def host(name: str, gpus: int = 1, **more: object) -> HostResources:
    """Return a host with T4s, much memory and many CPUs."""
    cards = tuple(PhysicalGpu(f"0000:{number:02x}:00.0", "NVIDIA Tesla T4", 15.0) for number in range(gpus))
    plenty = HostResources(name, slots=Slots(cards, OFFERED), free_mb=100_000, threads=64)
    return replace(plenty, **more)  # type: ignore[arg-type]


def worker(name: str, *profiles: str, **more: object) -> WorkerToPlace:
    """Return a worker with vGPUs."""
    return replace(WorkerToPlace(name, Demand(profiles)), **more)  # type: ignore[arg-type]


def cards(*kinds: str) -> tuple[Device, ...]:
    """Return devices of these kinds, each with its own address."""
    return tuple(Device(f"0000:{number:02x}:00.0", kind, "gold" if number else "") for number, kind in enumerate(kinds))


# Most hosts are in service and most demands are small, so that most demands fit.
REQUESTS = [DeviceRequest(A100), DeviceRequest(label="gold"), DeviceRequest("10de:2331")]
demands = st.one_of(
    st.just(Demand()),
    st.sampled_from(OFFERED).map(lambda profile: Demand((profile,))),
    st.builds(
        Demand,
        profiles=st.lists(st.sampled_from(OFFERED), max_size=2).map(tuple),
        devices=st.lists(st.sampled_from(REQUESTS), max_size=2).map(tuple),
        memory_mb=st.sampled_from([0, 60_000]),
    ),
)
hosts_of_a_cluster = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.sampled_from([A100, "10de:2331"]), max_size=2),
        st.sampled_from([True] * 7 + [False]),
        st.sampled_from([()] * 7 + [("elsewhere",)]),
    ),
    min_size=1,
    max_size=3,
).map(
    lambda rows: [
        host(f"esx{n}", gpus, devices=cards(*kinds), in_service=up, workers=there)
        for n, (gpus, kinds, up, there) in enumerate(rows)
    ]
)
allowed = st.sampled_from(
    [None, *(frozenset(some) for some in (["esx0"], ["esx1"], ["esx0", "esx1"], ["esx1", "esx2"]))]
)
people = st.lists(st.tuples(demands, allowed, st.sampled_from(["", "esx0", "esx1"])), min_size=1, max_size=4).map(
    lambda rows: [WorkerToPlace(f"w{n}", demand, hosts, at) for n, (demand, hosts, at) in enumerate(rows)]
)
rules = st.builds(Rules, apart=st.booleans(), same_node=st.sampled_from([IGNORE, PREFER]))


def fits(there: HostResources, workers: Sequence[WorkerToPlace], rule: Rules) -> bool:
    """Return whether all workers fit on a host together: the largest GPUs first, PCI devices in any order."""
    if rule.apart and workers and (len(workers) > 1 or there.workers):
        return False
    left: HostResources | None = there
    for one in sorted(workers, key=lambda one: ([-n for n in one.demand.size], one.name)):
        left = left.take(replace(one.demand, devices=()), rule.same_node) if left else None
    desired = [stop for one in workers for stop in one.demand.devices]
    ways = itertools.permutations(there.devices, len(desired))
    has_devices = any(all(stop.matches(device) for stop, device in zip(desired, way)) for way in ways)
    return left is not None and has_devices and all(one.may(there.name) for one in workers)


def brute_force(hosts: Sequence[HostResources], workers: Sequence[WorkerToPlace], rule: Rules) -> bool:
    """Return whether any placement of all workers fits."""
    for choice in itertools.product(hosts, repeat=len(workers)):
        by_host = {one.name: [w for w, at in zip(workers, choice) if at.name == one.name] for one in hosts}
        if all(fits(one, by_host[one.name], rule) for one in hosts):
            return True
    return not workers


@settings(max_examples=400)
@given(hosts_of_a_cluster, people, rules)
def test_all_are_placed_if_brute_force_places_all(
    hosts: list[HostResources], workers: list[WorkerToPlace], rule: Rules
) -> None:
    found = place(hosts, workers, rule)
    assert bool(found.refusals) != brute_force(hosts, workers, rule)
    assert set(found.where) | set(found.refusals) == {one.name for one in workers}
    for one in hosts:
        here = [w for w in workers if found.where.get(w.name) == one.name]
        assert fits(one, here, rule), (one, here)
    assert all(found.refusals.values()), "a refusal without a reason"


@settings(max_examples=300)
@given(
    st.integers(2, 4),
    st.lists(st.frozensets(st.integers(0, 3), min_size=1, max_size=3), min_size=2, max_size=5),
    st.booleans(),
)
def test_places_bound_workers_exactly_where_brute_force_does(
    count: int, bounds: list[frozenset[int]], apart: bool
) -> None:
    hosts = [host(f"esx{n}") for n in range(count)]
    workers = [
        worker(f"w{n}", "grid_t4-8c", hosts=frozenset(f"esx{one}" for one in bound)) for n, bound in enumerate(bounds)
    ]
    assert bool(place(hosts, workers, Rules(apart)).refusals) != brute_force(hosts, workers, Rules(apart))


@settings(max_examples=200)
@given(hosts_of_a_cluster, people, rules)
def test_settled_workers_stay_if_all_have_a_place(
    hosts: list[HostResources], workers: list[WorkerToPlace], rule: Rules
) -> None:
    homes = place(hosts, [replace(one, at="") for one in workers], rule).where
    settled = [replace(one, at=homes[one.name], settled=True) for one in workers if one.name in homes]
    assert place(hosts, settled, rule).where == {one.name: one.at for one in settled}


def test_settled_worker_stays_even_if_others_cannot_fit() -> None:
    closed = host("esx1", in_service=False)
    runs = worker("w1", OFFERED[0], at="esx1", settled=True)
    assert place([closed, host("esx2")], [runs]).where == {"w1": "esx1"}
    assert place([closed, host("esx2")], [replace(runs, settled=False)]).where == {"w1": "esx2"}


def test_a_worker_moves_only_if_necessary() -> None:
    runs = worker("w1", OFFERED[0], at="esx1", settled=True)
    bound = worker("w2", OFFERED[0], hosts=frozenset({"esx1"}))
    found = place([host("esx1"), host("esx2")], [runs, bound])
    assert (found.where, found.refusals) == ({"w1": "esx2", "w2": "esx1"}, {})


def test_workers_share_gpus_only_if_allowed_and_equal() -> None:
    pair = [worker("w1", "grid_t4-8c"), worker("w2", "grid_t4-8c")]
    assert place([host("esx1")], pair, Rules(apart=False)).where == {"w1": "esx1", "w2": "esx1"}
    assert place([host("esx1")], pair, Rules(apart=True)).refusals
    unequal = [worker("w1", "grid_t4-8c"), worker("w2", "grid_t4-4c")]
    assert place([host("esx1")], unequal, Rules(apart=False)).refusals
    mixed = host("esx1", slots=Slots((PhysicalGpu("0000:01:00.0", "NVIDIA Tesla T4", 15.0, (), True),), OFFERED))
    assert not place([mixed], unequal, Rules(apart=False)).refusals


def test_places_gpus_near_any_of_several_nics() -> None:
    gpus = (Device("0000:01:00.0", A100, node=0), Device("0000:02:00.0", A100, node=1))
    two = (DeviceRequest(A100), DeviceRequest(A100))
    wide, narrow = Demand(devices=two, nics=2), Demand(devices=two, nics=1)

    rails = host("esx1", devices=gpus, nic_nodes=(0, 1))

    assert rails.take(wide, "require") is not None
    assert rails.take(narrow, "require") is None
    assert host("esx1", devices=gpus, nic_nodes=(1,)).take(wide, "require") is None


def test_places_gpu_and_nic_on_one_required_node() -> None:
    far = host("esx1", devices=(Device("0000:01:00.0", A100, node=1),), nic_nodes=(0,))
    near = host("esx2", devices=(Device("0000:01:00.0", A100, node=0),), nic_nodes=(0,))
    silent = host("esx3", devices=(Device("0000:01:00.0", A100),))
    one = WorkerToPlace("w1", Demand(devices=(DeviceRequest(A100),)))
    assert place([far, near], [one]).where == {"w1": "esx2"}
    assert place([far, near], [one], Rules(same_node=IGNORE)).where == {"w1": "esx1"}
    assert place([far, silent], [one], Rules(same_node=REQUIRE)).where == {"w1": "esx3"}
    assert "not on one NUMA node" in place([far], [one], Rules(same_node=REQUIRE)).refusals["w1"]


def test_chooses_the_device_near_the_nic() -> None:
    both = host(
        "esx1", devices=(Device("0000:01:00.0", A100, node=1), Device("0000:02:00.0", A100, node=0)), nic_nodes=(0,)
    )
    after = both.take(Demand(devices=(DeviceRequest(A100),)))
    assert after
    assert [device.address for device in after.devices] == ["0000:01:00.0"]


def test_vgpu_is_near_only_if_all_gpus_are() -> None:
    nodes = (("0000:00:00.0", 0), ("0000:01:00.0", 1))
    assert not host("esx1", 2, nic_nodes=(0,), nodes=nodes).near(Demand((OFFERED[0],)))
    assert host("esx1", 1, nic_nodes=(0,), nodes=nodes[:1]).near(Demand((OFFERED[0],)))


def test_requests_linked_gpus_as_an_offered_group() -> None:
    demand = Demand(groups=(NVLINK,))
    assert group_profiles(NVLINK) == ("grid_t4-16c", "grid_t4-16c")
    assert group_profiles("two of them") is None
    linked = host("esx1", 2, groups=(NVLINK,))
    after = linked.take(demand)
    assert after
    assert after.slots.free("grid_t4-16c") == 0
    found = place([host("esx2", 2)], [WorkerToPlace("w1", demand)])
    assert f"no device group {NVLINK} (offered: none)" in found.refusals["w1"]


def test_most_specific_request_chooses_first() -> None:
    free = cards(A100, A100)
    chosen = choose([DeviceRequest(A100), DeviceRequest(label="gold")], free)
    assert chosen
    assert set(chosen) == set(free)
    assert choose([DeviceRequest(label="gold"), DeviceRequest(A100, "gold")], free) is None


def test_undemanding_worker_leaves_the_card_another_needs() -> None:
    any_card = WorkerToPlace("w1", Demand(devices=(DeviceRequest(A100),), memory_mb=2000))
    gold = WorkerToPlace("w2", Demand(devices=(DeviceRequest(label="gold"),), memory_mb=1000))
    there = host("esx1", devices=tuple(reversed(cards(A100, A100))))
    for pair in ([any_card, gold], [gold, any_card]):
        assert place([there], pair, Rules(apart=False)).where == {"w1": "esx1", "w2": "esx1"}
    settled = replace(any_card, at="esx1", settled=True)
    assert place([there], [settled, gold], Rules(apart=False)).where == {"w1": "esx1", "w2": "esx1"}
    after = there.take(any_card.demand)
    assert after
    assert [device.label for device in after.devices] == [""]
    both = after.take(gold.demand)
    assert both
    assert both.devices == ()


def test_keeps_a_reserved_device_on_its_node() -> None:
    there = host(
        "esx1", devices=(Device("0000:02:00.0", A100, "gold", 0), Device("0000:01:00.0", A100, "", 1)), nic_nodes=(0,)
    )
    near = there.take(Demand(devices=(DeviceRequest(A100),)), REQUIRE)
    assert near
    assert [device.node for device in near.devices] == [1]
    assert near.take(Demand(devices=(DeviceRequest(label="gold"),)), PREFER) is None
    assert near.take(Demand(devices=(DeviceRequest(A100),)), PREFER)


def test_rejects_sixteen_requests_for_fifteen_devices_at_once() -> None:
    assert choose([DeviceRequest(A100)] * 16, cards(*[A100] * 15)) is None


def refusal(hosts: Iterable[HostResources], one: WorkerToPlace, **rule: object) -> str:
    return place(hosts, [one], Rules(**rule)).refusals[one.name]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "one", "words"),
    [
        (host("esx1"), worker("w", "grid_t4-32c"), "no host offers grid_t4-32c, did you mean grid_t4-8c or grid_t4-4c"),
        (host("esx1", in_service=False), worker("w", OFFERED[0]), "esx1: out of service"),
        (host("esx1", workers=("old",)), worker("w"), "taken, and workers are kept apart (old)"),
        (
            host(
                "esx1",
                slots=Slots((PhysicalGpu("a", "T4", 15.0, (OFFERED[0],)),), OFFERED),
                holders=(("db", OFFERED[0]),),
            ),
            worker("w", OFFERED[0]),
            "no free place for grid_t4-16c (db has grid_t4-16c)",
        ),
        (host("esx1", free_mb=10), WorkerToPlace("w", Demand(memory_mb=20)), "10 MB of memory left, but 20 MB"),
        (host("esx1", threads=4), WorkerToPlace("w", Demand(cpus=8)), "4 logical CPUs, but 8 are requested"),
        (
            host("esx1", devices=(Device("0000:01:00.0", A100, holder="db"),)),
            WorkerToPlace("w", Demand(devices=(DeviceRequest(A100),))),
            "not enough free PCI devices 10de:20f1 (db has 0000:01:00.0)",
        ),
        (host("esx1"), worker("w", hosts=frozenset({"esx9"})), "(esx9) is in the cluster"),
        (host("esx1", 0, slots=Slots((), ())), worker("w", OFFERED[0]), "esx1 offers none"),
    ],
)
def test_every_refusal_names_the_reason(there: HostResources, one: WorkerToPlace, words: str) -> None:
    assert words in refusal([there], one)


def test_hosts_are_grouped_by_their_profiles() -> None:
    other = host("esx2", slots=Slots((PhysicalGpu("a", "NVIDIA A100", 40.0),), ("grid_a100-40c",)))
    full = host("esx1", workers=("old",))
    result = refusal([full, other], worker("w", OFFERED[0]))
    assert result == "esx1: taken, and workers are kept apart (old); esx2: no grid_t4-16c (offered: grid_a100-40c)"


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("hosts", [512, 490])
def test_500_workers_on_about_512_hosts_take_seconds(apart: bool, hosts: int) -> None:
    workers = [WorkerToPlace(f"w{n:03}", Demand((OFFERED[0],), memory_mb=1000 + n % 3)) for n in range(500)]
    began = time.process_time()
    found = place([host(f"esx{n:03}") for n in range(hosts)], workers, Rules(apart=apart))
    assert time.process_time() - began < 5
    assert len(found.refusals) == max(500 - hosts, 0)
    assert len(set(found.where.values())) == min(hosts, 500)
    assert all(len(reported) < 1000 for reported in found.refusals.values())
