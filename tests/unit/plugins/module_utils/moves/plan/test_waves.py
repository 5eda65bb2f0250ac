"""Waves of moves: random fleets against a second, simple implementation of the rules, and the reasons in words."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.moves.plan.fleet import Fleet, HostRoom, MovingWorker, most_moves
from plugins.module_utils.moves.plan.plan import Infeasible, Move, plan_moves
from plugins.module_utils.moves.plan.waves import Wave, plan_waves

Places = Mapping[str, str]


def moments(at: Places, moves: Sequence[Move]) -> Iterator[dict[str, set[str]]]:
    """Yield the hosts that each worker uses, for every progress of moves at once: not started, under way, arrived."""
    for progress in itertools.product(range(3), repeat=len(moves)):
        used = {worker: {host} for worker, host in at.items()}
        for move, stage in zip(moves, progress):
            used[move.worker] = ({move.source}, {move.source, move.target}, {move.target})[stage]
        yield used


def has_room(fleet: Fleet, used: Mapping[str, set[str]]) -> bool:
    for host, room in fleet.hosts.items():
        guests = [worker for worker, hosts in used.items() if host in hosts]
        totals = [sum(fleet.workers[worker].needs[index] for worker in guests) for index in range(3)]
        if any(total > has for total, has in zip(totals, room.has)) or (fleet.one_per_host and len(guests) > 1):
            return False
        if any(len(names.intersection(guests)) > 1 for names in fleet.apart):
            return False
    return True


def may_be_one_wave(fleet: Fleet, at: Places, moves: Sequence[Move], most: int) -> bool:
    """Return whether the requirement allows these moves at once."""
    if len(moves) > most or len({move.worker for move in moves}) < len(moves):
        return False
    for job in {fleet.workers[move.worker].job for move in moves}:
        stuns = [fleet.workers[m.worker].stun_s[m.target] for m in moves if fleet.workers[m.worker].job == job]
        if len(stuns) > 1 and (None in stuns or sum(stun or 0 for stun in stuns) > fleet.budget_s):
            return False
    for host, room in fleet.hosts.items():
        here = [move.worker for move in moves if host in (move.source, move.target)]
        if len(here) > 1 and (len(here) > room.moves or any(fleet.workers[worker].alone for worker in here)):
            return False
    # Room that a move frees may be used by no other: the worst moment counts both hosts of each.
    return all(has_room(fleet, used) for used in moments(at, moves))


def joins(fleet: Fleet, at: Places, wave: Wave, worker: str, most: int) -> bool:
    """Return whether a worker could join a wave with any target."""
    moves = [Move(worker, at[worker], host) for host in fleet.workers[worker].targets if host != at[worker]]
    return any(may_be_one_wave(fleet, at, [*wave.moves, move], most) for move in moves)


def fewest_waves(fleet: Fleet, at: Places, most: int) -> int | None:
    """Return the fewest waves in which every worker moves, by trying everything; None if there are none."""
    layer, count = {(tuple(sorted(at.items())), frozenset[str]())}, 0
    seen = set(layer)
    while not any(len(moved) == len(at) for _places, moved in layer):
        count += 1
        following = set()
        for places, moved in layer:
            here = dict(places)
            single = [Move(w, here[w], host) for w in here for host in fleet.workers[w].targets if host != here[w]]
            for size in range(1, most + 1):
                for moves in itertools.combinations(single, size):
                    if may_be_one_wave(fleet, here, moves, most):
                        after = {**here, **{move.worker: move.target for move in moves}}
                        following.add((tuple(sorted(after.items())), moved | {move.worker for move in moves}))
        layer = following - seen
        seen |= layer
        if not layer:
            return None
    return count


@st.composite
def fleets(draw: st.DrawFn, most_workers: int = 5, most_hosts: int = 5) -> tuple[Fleet, dict[str, str]]:
    hosts = {
        f"h{number}": HostRoom(
            (draw(st.integers(1, 3)), draw(st.sampled_from((math.inf, 16, 24))), math.inf),
            draw(st.sampled_from((1, 2, 8))),
        )
        for number in range(draw(st.integers(2, most_hosts)))
    }
    one_per_host = draw(st.booleans())
    fleet = Fleet({}, hosts, draw(st.sampled_from((20.0, 50.0, math.inf))), (), one_per_host)
    at: dict[str, str] = {}
    for number in range(draw(st.integers(1, most_workers))):
        name = f"w{number}"
        targets = draw(st.sets(st.sampled_from(sorted(hosts)), min_size=1)) if draw(st.booleans()) else set(hosts)
        stuns = {host: draw(st.sampled_from((None, 1.0, 10.0, 22.0, 40.0))) for host in hosts}
        needs = (draw(st.integers(1, 2)), draw(st.sampled_from((0, 8))), 0)
        job, alone = draw(st.sampled_from(("", "other"))), draw(st.booleans())
        workers = {**fleet.workers, name: MovingWorker(needs, frozenset(targets), stuns, job, alone)}
        home = draw(st.sampled_from(sorted(hosts)))
        if has_room(replace(fleet, workers=workers), {w: {h} for w, h in {**at, name: home}.items()}):
            fleet, at = replace(fleet, workers=workers), {**at, name: home}
    if draw(st.booleans()) and len(set(at.values())) == len(at):
        fleet = replace(fleet, apart=(frozenset(list(at)[:2]),))
    return fleet, at


def planned(fleet: Fleet, at: Places, return_home: bool = False) -> list[Move] | None:
    try:
        return plan_moves(
            {host: int(room.has[0]) for host, room in fleet.hosts.items()},
            at,
            demand={name: worker.needs[0] for name, worker in fleet.workers.items()},
            allowed={name: worker.targets for name, worker in fleet.workers.items()},
            return_home=return_home,
            one_per_host=fleet.one_per_host,
        )
    except Infeasible:
        return None


@settings(max_examples=500, deadline=None)
@given(fleets(), st.integers(1, 4), st.booleans())
def test_waves_keep_the_rules_and_wait_with_reason(
    given_fleet: tuple[Fleet, dict[str, str]], most: int, return_home: bool
) -> None:
    fleet, at = given_fleet
    start = dict(at)
    plan = planned(fleet, at, return_home)
    if plan is None:
        return
    try:
        waves = plan_waves(fleet, plan, at, most, return_home=return_home)
    except Infeasible:
        assert len(at) > 3 or fewest_waves(fleet, at, 1) is None
        return
    for wave, following in itertools.zip_longest(waves, waves[1:]):
        assert wave.moves
        for move in wave.moves:
            assert at[move.worker] == move.source != move.target
            assert move.target in fleet.workers[move.worker].targets
        assert may_be_one_wave(fleet, at, wave.moves, most), (wave, at)
        if wave.reason:
            first = following.moves[0]
            is_first = first.worker == wave.waits and first.source == at[wave.waits]
            in_order = not is_first or not may_be_one_wave(fleet, at, [*wave.moves, first], most)
            assert in_order or not joins(fleet, at, wave, wave.waits, most), (wave, at)
        else:
            turns = following is not None and following.moves[0].worker in {move.worker for move in wave.moves}
            assert len(wave.moves) == most or following is None or (return_home and turns), (wave, at)
        at = {**at, **{move.worker: move.target for move in wave.moves}}
    assert {move.worker for wave in waves for move in wave.moves} == set(start)
    assert not return_home or at == start


@settings(max_examples=150, deadline=None)
@given(fleets(most_workers=3, most_hosts=4), st.integers(1, 3))
def test_planner_finds_waves_exactly_when_they_exist(given_fleet: tuple[Fleet, dict[str, str]], most: int) -> None:
    fleet, at = given_fleet
    plan, least = planned(fleet, at), fewest_waves(fleet, at, most)
    if plan is None:
        assert least is None
        return
    if least is None:
        with pytest.raises(Infeasible, match="there is none"):
            plan_waves(fleet, plan, at, most)
        return
    waves = plan_waves(fleet, plan, at, most)
    assert least <= len(waves)
    assert most > 1 or len(waves) == sum(len(wave.moves) for wave in waves)


def uniform(workers: int, spare: int, stun: float = 22.0, budget: float = 100.0) -> tuple[Fleet, dict[str, str]]:
    hosts = {f"h{number:03}": HostRoom((1, math.inf, math.inf), 8) for number in range(workers + spare)}
    worker = MovingWorker((1, 0, 0), frozenset(hosts), dict.fromkeys(hosts, stun), alone=True)
    fleet = Fleet({f"w{number:03}": worker for number in range(workers)}, hosts, budget, (), True)
    return fleet, dict(zip(fleet.workers, hosts))


@pytest.mark.parametrize("home", [False, True])
@pytest.mark.parametrize(
    ("workers", "spare", "most"), [(32, 1, 4), (32, 2, 4), (32, 4, 4), (32, 4, 2), (7, 3, 2), (5, 2, 9)]
)
def test_equal_workers_move_in_the_fewest_waves(workers: int, spare: int, most: int, home: bool) -> None:
    fleet, at = uniform(workers, spare)
    waves = plan_waves(fleet, planned(fleet, at, home) or [], at, most, return_home=home)
    at_once = min(spare, most, 4)
    assert len(waves) == math.ceil(workers / at_once) * (2 if home else 1)
    assert sum(len(wave.moves) for wave in waves) == workers * (2 if home else 1)


@settings(max_examples=60, deadline=None)
@given(fleets(most_workers=3, most_hosts=4), st.integers(2, 3))
def test_workers_with_enough_room_need_the_fewest_waves(given_fleet: tuple[Fleet, dict[str, str]], most: int) -> None:
    fleet, at = given_fleet
    free = {f"free{number}": HostRoom((2, math.inf, math.inf), 8) for number in range(len(at))}
    same = MovingWorker((1, 0, 0), frozenset(free), dict.fromkeys(free, 22.0), alone=True)
    homes = {worker: f"home{number}" for number, worker in enumerate(at)}
    hosts = {**{home: HostRoom((1, math.inf, math.inf)) for home in homes.values()}, **free}
    fleet = Fleet(dict.fromkeys(at, same), hosts, fleet.budget_s, (), True)
    plan = planned(fleet, homes)
    assert plan is not None
    assert len(plan_waves(fleet, plan, homes, most)) == fewest_waves(fleet, homes, most)


def pair(**of_second: object) -> tuple[Fleet, dict[str, str]]:
    """Two workers on a host each, of which the second is special, and two free hosts."""
    hosts = {name: HostRoom((2, 64, math.inf), 8) for name in ("h1", "h2", "free1", "free2")}
    worker = MovingWorker((1, 32, 0), ("free1",), {"free1": 1.0, "free2": 1.0})
    return Fleet({"w1": worker, "w2": replace(worker, **of_second)}, hosts, 100.0), {"w1": "h1", "w2": "h2"}


@pytest.mark.parametrize(
    ("changed", "more", "words"),
    [
        ({}, {}, ""),
        ({"stun_s": {"free1": None}}, {}, "the stun of w2 is unknown"),
        ({"stun_s": {"free1": None}, "job": "other"}, {}, ""),
        ({"stun_s": {"free1": 99.5}}, {}, "(1 s of w1 + 100 s of w2), over the budget of 100 s"),
        ({"alone": True}, {}, "free1 has a move already, and a vGPU moves alone over the links of its hosts"),
    ],
)
def test_separates_moves_that_must_not_run_together(
    changed: dict[str, object], more: dict[str, object], words: str
) -> None:
    fleet, at = pair(**changed)
    fleet = replace(fleet, **more)
    plan = [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")]
    waves = plan_waves(fleet, plan, at, 2)
    assert len(waves) == (2 if words else 1)
    assert words in waves[0].reason
    may = all(move.target in fleet.workers[move.worker].targets for move in plan) and may_be_one_wave(
        fleet, at, plan, 2
    )
    assert may == (not words)


@pytest.mark.parametrize(
    ("changed", "more", "words"),
    [
        ({"needs": (2, 0, 0)}, {}, "h1 has 1 GPU slots free until the others have moved, it needs 2"),
        ({"needs": (1, 33, 0)}, {}, "h1 has 32 MB of memory free until the others have moved, it needs 33"),
        ({}, {"apart": (frozenset({"w1", "w2"}),)}, "a rule keeps it apart from w1, which uses h1 until"),
        ({}, {"one_per_host": True}, "no other host has room for it until the others have moved"),
    ],
)
def test_uses_freed_room_in_the_next_wave(changed: dict[str, object], more: dict[str, object], words: str) -> None:
    fleet, at = pair(targets=("h1",), stun_s={"h1": 1.0}, **changed)
    fleet = replace(fleet, **more)

    first, second = plan_waves(fleet, [Move("w1", "h1", "free1"), Move("w2", "h2", "h1")], at, 2)

    assert words in first.reason
    assert second.moves == (Move("w2", "h2", "h1"),)


def test_a_slow_or_unknown_link_carries_fewer_moves() -> None:
    assert [most_moves(speed) for speed in (25_000, 10_000, 9_999, 1_000, 100, 0, None)] == [8, 8, 4, 4, 1, 1, 1]
    fleet, at = pair()
    fleet = replace(fleet, hosts={**fleet.hosts, "free1": HostRoom((2, 64, math.inf), 1)})
    first, _second = plan_waves(fleet, [Move("w1", "h1", "free1"), Move("w2", "h2", "free1")], at, 2)
    assert first.reason == "the vMotion link of free1 allows 1 at a time"


def test_plans_500_workers_within_seconds() -> None:
    fleet, at = uniform(500, 12)
    plan = planned(fleet, at) or []
    began = time.process_time()
    assert len(plan_waves(fleet, plan, at, 4)) == 125
    assert time.process_time() - began < 10
