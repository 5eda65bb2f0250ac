"""GPUs of hosts and vGPUs of several profiles, drawn at random, and a second, simple rule of what fits."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from plugins.module_utils.moves.plan.fleet import Fleet, GpuRoom, HostRoom, MovingWorker
from plugins.module_utils.moves.plan.plan import Move
from plugins.module_utils.workers.placement.gpu_slots import PhysicalGpu, Slots

PROFILES = ("grid_t4-16c", "grid_t4-8c", "grid_t4-4c")
Layout = tuple[tuple[str, ...], ...]


def room_of(*used: Sequence[str], mixed: bool = False) -> GpuRoom:
    """The GPUs of a host: one T4 for each of these lists of the vGPUs that stay on it."""
    gpus = (PhysicalGpu(f"{n}", "NVIDIA Tesla T4", 16, tuple(one), mixed) for n, one in enumerate(used))
    return GpuRoom(Slots(tuple(gpus), PROFILES))


@st.composite
def fleets(draw: st.DrawFn) -> tuple[Fleet, dict[str, str], list[str]]:
    """Draw hosts with a few GPUs, workers of two profiles on them, and the hosts whose workers move."""
    names = [f"esx{number}" for number in range(1, draw(st.integers(3, 4)) + 1)]
    mixed, most = draw(st.sampled_from((False, False, True))), draw(st.integers(1, 2))
    kept = st.sampled_from(((), (), (), ("grid_t4-8c",), ("grid_t4-4c",)))
    gpus = st.lists(kept, min_size=1, max_size=most).map(lambda used: room_of(*used, mixed=mixed))
    hosts = {name: HostRoom((9, 9, 9), gpus=draw(gpus)) for name in names}
    fleet, at = Fleet({}, hosts, one_per_host=draw(st.sampled_from((False, False, False, True)))), dict[str, str]()
    pair = draw(st.sampled_from((PROFILES[:2], PROFILES[:2], PROFILES[1:])))
    for number in range(draw(st.integers(3, 4))):
        name, home, profile = f"w{number}", draw(st.sampled_from(names)), draw(st.sampled_from(pair))
        targets = draw(st.sampled_from((names, names, names, names[:2], names[1:])))
        profiles = (profile,) * draw(st.sampled_from((1, 1, 1, 2, 0)))
        allowed, stuns = frozenset({*targets, home}), dict.fromkeys(names, 1.0)
        worker = MovingWorker((1, 0, 0), allowed, stuns, alone=bool(profiles), profiles=profiles)
        more = replace(fleet, workers={**fleet.workers, name: worker})
        if any(on(more, home, [name, *(other for other in at if at[other] == home)])):
            fleet, at = more, {**at, name: home}
    return fleet, at, sorted(draw(st.sets(st.sampled_from(names), min_size=2, max_size=3)))


def on(fleet: Fleet, host: str, workers: Sequence[str]) -> Iterator[Layout]:
    """Yield every way in which the vGPUs of these workers can be on the GPUs of a host."""
    room = fleet.hosts[host].gpus
    assert room is not None
    vgpus = [profile for name in workers for profile in fleet.workers[name].profiles]
    for chosen in itertools.product(range(len(room.slots.gpus)), repeat=len(vgpus)):
        layout = tuple(
            (*gpu.used, *(profile for profile, where in zip(vgpus, chosen) if where == number))
            for number, gpu in enumerate(room.slots.gpus)
        )
        if all(fits(used, gpu.mixed_sizes) for used, gpu in zip(layout, room.slots.gpus)):
            yield layout


def fits(used: Iterable[str], mixed: bool) -> bool:
    sizes = [int(profile.split("-")[1][:-1]) for profile in used]
    return sum(sizes) <= 16 and (mixed or len(set(sizes)) <= 1)


def arrivals(fleet: Fleet, host: str, layout: Layout, profiles: Sequence[str]) -> set[Layout]:
    """Return every way in which further vGPUs can join those on a host."""
    room, found = fleet.hosts[host].gpus, {layout}
    assert room is not None
    for profile in profiles:
        more = {(*one[:n], (*one[n], profile), *one[n + 1 :]) for one in found for n in range(len(one))}
        found = {one for one in more if all(fits(used, gpu.mixed_sizes) for used, gpu in zip(one, room.slots.gpus))}
    return found


def surely(fleet: Fleet, worker: str, host: str, there: Sequence[str]) -> bool:
    """Return whether a worker fits on a host, whichever GPUs the others use there."""
    profiles = fleet.workers[worker].profiles
    if fleet.hosts[host].gpus is None or not profiles:
        return True
    layouts = list(on(fleet, host, there))
    return bool(layouts) and all(arrivals(fleet, host, layout, profiles) for layout in layouts)


def follow(fleet: Fleet, at: Mapping[str, str], moves: Iterable[Move]) -> None:
    """Follow a plan through every choice of GPUs by the hosts: each worker finds one in each of them."""
    workers = {host: [name for name in at if at[name] == host] for host in fleet.hosts}
    possible = {host: set(map(_sorted, on(fleet, host, names))) for host, names in workers.items()}
    for move in moves:
        profiles = fleet.workers[move.worker].profiles
        found = [arrivals(fleet, move.target, layout, profiles) for layout in possible[move.target]]
        assert all(found), f"{move} does not fit in {possible[move.target]}"
        possible[move.target] = {_sorted(layout) for layouts in found for layout in layouts}
        # The vGPUs that leave may have been on any GPU that has some of their profile.
        for profile in profiles:
            possible[move.source] = {
                (*one[:n], tuple(_without(used, profile)), *one[n + 1 :])
                for one in possible[move.source]
                for n, used in enumerate(one)
                if profile in used
            }


def _sorted(layout: Layout) -> Layout:
    return tuple(tuple(sorted(used)) for used in layout)


def _without(used: Sequence[str], profile: str) -> list[str]:
    left = list(used)
    left.remove(profile)
    return left


def three_workers(large: str, **hosts: GpuRoom) -> tuple[Fleet, dict[str, str]]:
    """Workers a, b and c on esx1: one with a large vGPU, two with small ones."""
    profiles = {name: PROFILES[0 if name == large else 1] for name in "abc"}
    workers = {name: MovingWorker((1, 0, 0), frozenset(hosts), profiles=(one,)) for name, one in profiles.items()}
    rooms = {name: HostRoom((9, 9, 9), gpus=room) for name, room in hosts.items()}
    return Fleet(workers, rooms), dict.fromkeys(profiles, "esx1")
