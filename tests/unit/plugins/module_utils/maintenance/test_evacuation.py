"""Whether hosts can be emptied: where virtual machines go, which must be off, which block and why."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.maintenance import evacuation
from plugins.module_utils.maintenance.evacuation import AntiAffinityRule, EvacuationCluster, FreeCapacity, VmHostRule
from plugins.module_utils.workers.capacity.running_vm import Vm
from plugins.module_utils.workers.placement.gpu_slots import PhysicalGpu, Slots

T4 = "grid_t4-16c"
HALF = "grid_t4-8c"
QUARTER = "grid_t4-4c"
GIGABYTES = {T4: 16, HALF: 8, QUARTER: 4}


def room(number: int, *used: str, **more: object) -> FreeCapacity:
    gpu = PhysicalGpu("0000:3b:00.0", "Tesla T4", 15.75, used)
    return FreeCapacity(f"esx{number}", slots=Slots((gpu,), (T4, HALF)), **more)  # type: ignore[arg-type]


def worker(number: int, *vgpus: str, **more: object) -> Vm:
    return Vm(f"vm-{number}", f"w{number}", f"esx{number}", "ml", "gold", "carol", vgpus=vgpus, **more)  # type: ignore[arg-type]


def cluster(rooms: list[FreeCapacity], vms: list[Vm], **more: object) -> EvacuationCluster:
    return EvacuationCluster("gpu", tuple(rooms), tuple(vms), vgpu_by_drs=True, hot_migrate=True, **more)  # type: ignore[arg-type]


FIVE = [room(number, *((T4,) if number < 5 else ())) for number in range(1, 6)]
FOUR_WORKERS = [worker(number, T4) for number in range(1, 5)]


def test_the_one_free_gpu_takes_the_worker() -> None:
    verdict = evacuation.plan(cluster(FIVE, FOUR_WORKERS), ["esx1"])["esx1"]
    assert [(one.vm.name, one.to) for one in verdict.moves] == [("w1", "esx5")] and not verdict.blocks


@pytest.mark.parametrize(
    ("drs", "moved_by"), [("partiallyAutomated", "drs"), ("", "module"), ("fullyAutomated", "drs")]
)
def test_machines_of_vcenter_itself_are_left_to_it(drs: str, moved_by: str) -> None:
    """It moves or stops vCLS whatever DRS does, and vSphere 8.0 U3 refuses to migrate them."""
    there = cluster([room(1), room(2)], [worker(1, of_vcenter=True)], drs=drs)
    assert evacuation.plan(there, ["esx1"], moved_by=moved_by)["esx1"] == evacuation.HostEvacuation()


def test_gives_one_free_slot_to_one_leaving_host() -> None:
    verdicts = evacuation.plan(cluster(FIVE, FOUR_WORKERS), ["esx1", "esx2"])
    assert len(verdicts["esx1"].moves) == 1
    (block,) = verdicts["esx2"].blocks
    assert str(block) == (
        "w2 (folder ml, pool gold, owner carol) has nowhere to go: no other host in service has a free grid_t4-16c"
    )


def test_does_not_target_another_leaving_host() -> None:
    verdicts = evacuation.plan(cluster(FIVE, FOUR_WORKERS), ["esx1", "esx5"])
    assert verdicts["esx1"].blocks and not verdicts["esx5"].blocks


def test_a_full_cluster_can_never_be_emptied() -> None:
    verdict = evacuation.plan(cluster(FIVE[:4], FOUR_WORKERS), ["esx3"])["esx3"]
    assert not verdict.moves and len(verdict.blocks) == 1


def test_a_host_out_of_service_takes_nothing() -> None:
    rooms = [*FIVE[:4], replace(FIVE[4], in_service=False)]
    assert evacuation.plan(cluster(rooms, FOUR_WORKERS), ["esx1"])["esx1"].blocks


def test_fills_half_used_gpus_before_an_empty_one() -> None:
    rooms = [room(1, HALF), room(2, HALF), room(3)]
    verdict = evacuation.plan(cluster(rooms, [worker(1, HALF), worker(2, HALF)]), ["esx1"])["esx1"]
    assert verdict.moves[0].to == "esx2"


def test_mixes_profile_sizes_only_where_the_gpu_allows() -> None:
    rooms = [room(1, T4), room(2, HALF)]
    vms = [worker(1, T4), worker(2, HALF)]
    assert evacuation.plan(cluster(rooms, vms), ["esx1"])["esx1"].blocks


BLOCKS = [
    ({"drs": "manual"}, worker(1), "DRS of cluster gpu is manual"),
    ({"drs": ""}, worker(1), "DRS of cluster gpu is off"),
    ({}, worker(1, left_by_drs=True), "separate automation level in DRS"),
    ({}, worker(1, T4, stopped_by_drs=True), "would be powered off by DRS, as its setting maintenance.vm.evacuation"),
    ({"vgpu_by_drs": False}, worker(1, T4), "VgpuMMAutomationTimeoutSecs"),
    ({"hot_migrate": False}, worker(1, T4), "vgpu.hotmigrate.enabled is false"),
    ({}, worker(1, fixed=("PCI device 0000:3b:00.0 in passthrough",)), "power_off: true"),
    ({"must_run": (VmHostRule("pin", frozenset({"vm-1"}), frozenset({"esx1"})),)}, worker(1), "the rule pin"),
    ({"apart": (AntiAffinityRule("spread", frozenset({"vm-1", "vm-2", "vm-3"})),)}, worker(1), "the rule spread"),
]


@pytest.mark.parametrize(("settings", "vm", "why"), BLOCKS, ids=[why for *_rest, why in BLOCKS])
def test_names_what_blocks(settings: dict[str, object], vm: Vm, why: str) -> None:
    vms = [vm, worker(2), worker(3)]
    free = replace(cluster([room(1), room(2), room(3)], vms), **settings)  # type: ignore[arg-type]
    (block,) = evacuation.plan(free, ["esx1"])["esx1"].blocks
    assert why in block.why


@pytest.mark.parametrize("settings", [{"drs": "manual"}, {"vgpu_by_drs": False}])
def test_moves_workers_that_drs_would_leave(settings: dict[str, object]) -> None:
    left = replace(cluster([room(1, T4), room(2)], [worker(1, T4)]), **settings)  # type: ignore[arg-type]
    assert evacuation.plan(left, ["esx1"], moved_by=evacuation.MODULE)["esx1"].moves


def test_powers_off_machines_with_a_device_if_allowed() -> None:
    vm = worker(1, fixed=("an SR-IOV network card",))
    verdict = evacuation.plan(cluster([room(1), room(2)], [vm]), ["esx1"], power_off=True)["esx1"]
    assert verdict.power_off == (vm,) and not verdict.blocks and not verdict.moves
    assert evacuation.as_dict(verdict)["power_off"][0]["why"] == "an SR-IOV network card"


def test_reserved_memory_counts_where_it_is_known() -> None:
    rooms = [room(1), room(2, free_mb=1000), room(3)]
    big = worker(1, reserved_mb=2000)
    assert evacuation.plan(cluster(rooms, [big]), ["esx1"])["esx1"].moves[0].to == "esx3"
    assert (
        evacuation.plan(cluster(rooms[:2], [big]), ["esx1"])["esx1"]
        .blocks[0]
        .why.endswith("2000 MB of memory unreserved")
    )


def test_keeps_must_run_rules_with_a_free_host() -> None:
    pinned = (VmHostRule("pin", frozenset({"vm-1"}), frozenset({"esx1", "esx3"})),)
    rooms = [room(1), room(2), room(3)]
    assert evacuation.plan(cluster(rooms, [worker(1)], must_run=pinned), ["esx1"])["esx1"].moves[0].to == "esx3"


def test_leaves_a_place_to_a_more_restricted_worker() -> None:
    pinned = (VmHostRule("pin", frozenset({"vm-2"}), frozenset({"esx1", "esx2"})),)
    rooms = [room(1), room(2), room(3)]
    vms = [replace(worker(1, T4), name="a"), replace(worker(2, T4), host="esx1", name="b")]
    verdict = evacuation.plan(cluster(rooms, vms, must_run=pinned), ["esx1"])["esx1"]
    assert {one.vm.name: one.to for one in verdict.moves} == {"a": "esx3", "b": "esx2"}
    assert not verdict.blocks


def test_blocked_host_takes_no_place_from_the_next() -> None:
    tied = worker(1, fixed=("PCI device 0000:3b:00.0 in passthrough",))
    vms = [tied, replace(worker(3, T4), host="esx1"), worker(2, T4)]
    verdicts = evacuation.plan(cluster([room(1), room(2, T4), room(4)], vms), ["esx1", "esx2"])
    assert [block.vm for block in verdicts["esx1"].blocks] == [tied]
    assert [one.to for one in verdicts["esx2"].moves] == ["esx4"]


def test_small_vgpu_leaves_room_for_a_large_one() -> None:
    """The small one was put on the empty GPU, and the large one of the next host was blocked."""
    two = (
        PhysicalGpu("0000:3b:00.0", "Tesla T4", 15.75, (), True),
        PhysicalGpu("0000:4b:00.0", "Tesla T4", 15.75, (QUARTER,), True),
    )
    rooms = [room(1), room(2), FreeCapacity("esx3", slots=Slots(two, (T4, HALF, QUARTER)))]
    vms = [worker(1, QUARTER, HALF), worker(2, T4)]
    verdicts = evacuation.plan(cluster(rooms, vms), ["esx1", "esx2"])
    assert [verdict.blocks for verdict in verdicts.values()] == [(), ()]


NAMES = ("esx1", "esx2", "esx3", "esx4")
some_vms = st.lists(
    st.tuples(
        st.sampled_from(["esx1", "esx1", "esx2", "esx3"]),
        st.sampled_from([(), (T4,), (HALF,), (HALF, HALF), (QUARTER,), (QUARTER, HALF)]),
        st.sampled_from([0, 400, 600]),
    ),
    min_size=1,
    max_size=5,
)
keys = st.frozensets(st.sampled_from([f"vm-{number}" for number in range(5)]), min_size=1, max_size=3)


def holds(gpus: Sequence[PhysicalGpu], sizes: Sequence[str]) -> bool:
    """Whether GPUs can hold vGPUs of these sizes with those that are there, by trying everything."""
    for choice in itertools.product(range(len(gpus)), repeat=len(sizes)):
        there = [
            [*gpu.used, *(size for size, at in zip(sizes, choice) if at == index)] for index, gpu in enumerate(gpus)
        ]
        if all(
            sum(GIGABYTES[size] for size in on_gpu) <= 16 and (gpu.mixed_sizes or len(set(on_gpu)) <= 1)
            for gpu, on_gpu in zip(gpus, there)
        ):
            return True
    return False


def fit(where: dict[str, str], vms: list[Vm], layout: EvacuationCluster) -> bool:
    """Whether the hosts that stay can hold them all, each at its place, calculated without the planner."""
    for room_ in layout.rooms[2:]:
        here = [vm for vm in vms if where[vm.key] == room_.name]
        sizes = [profile for vm in here for profile in vm.vgpus]
        if not holds(room_.slots.gpus, sizes) or sum(vm.reserved_mb for vm in here) > 1000:
            return False
    by_key = {vm.key: where[vm.key] for vm in vms}
    together = [[by_key[key] for key in rule.vms if key in by_key] for rule in layout.apart]
    tied = [(by_key[key], rule.hosts) for rule in layout.must_run for key in rule.vms if key in by_key]
    return all(len(set(homes)) == len(homes) for homes in together) and all(host in hosts for host, hosts in tied)


def rooms_with(used: list[tuple[str, ...]], mixed: bool) -> list[FreeCapacity]:
    """Return hosts with two GPUs each; ``used`` are the vGPUs on those of the first and of the second of two hosts."""
    return [
        FreeCapacity(
            name,
            slots=Slots(
                tuple(
                    PhysicalGpu(f"0000:{n}b:00.0", "Tesla T4", 15.75, used[2 * (number % 2) + n - 3], mixed)
                    for n in (3, 4)
                ),
                (T4, HALF, QUARTER),
            ),
            free_mb=1000,
        )
        for number, name in enumerate(NAMES)
    ]


gpus = st.lists(st.sampled_from([(), (HALF,), (QUARTER,)]), min_size=4, max_size=4)


@settings(max_examples=400, deadline=None)
@given(some_vms, keys, keys, st.frozensets(st.sampled_from(NAMES), min_size=1), gpus, st.booleans())
def test_empties_hosts_exactly_where_brute_force_does(
    rows: list[tuple[str, tuple[str, ...], int]],
    apart: frozenset[str],
    tied: frozenset[str],
    hosts: frozenset[str],
    used: list[tuple[str, ...]],
    mixed: bool,
) -> None:
    """Two hosts leave, two with two GPUs each stay; those that run there already stay where they are."""
    vms = [
        Vm(f"vm-{number}", f"w{number}", host, vgpus=vgpus, reserved_mb=mb)
        for number, (host, vgpus, mb) in enumerate(rows)
        if host in NAMES[:2]
    ]
    rules = {"apart": (AntiAffinityRule("apart", apart),), "must_run": (VmHostRule("tied", tied, hosts),)}
    layout = cluster(rooms_with(used, mixed), vms, **rules)
    verdicts = evacuation.plan(layout, NAMES[:2])
    leaving: list[Vm] = []
    for name in NAMES[:2]:
        together = [*leaving, *(vm for vm in vms if vm.host == name)]
        places = itertools.product(NAMES[2:], repeat=len(together))
        possible = any(fit({vm.key: at for vm, at in zip(together, place)}, together, layout) for place in places)
        assert bool(verdicts[name].blocks) != possible
        if possible:
            leaving = together
    moves = [one for name in NAMES[:2] if not verdicts[name].blocks for one in verdicts[name].moves]
    assert {one.vm for one in moves} == set(leaving)
    assert fit({one.vm.key: one.to for one in moves}, leaving, layout)
