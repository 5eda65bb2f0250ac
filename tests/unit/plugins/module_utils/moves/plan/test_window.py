"""The plan of a maintenance window: every host is empty before its change, and no worker moves more than it must."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.moves.plan import search
from plugins.module_utils.moves.plan.fleet import Fleet, HostRoom, MovingWorker
from plugins.module_utils.moves.plan.placement import Infeasible
from plugins.module_utils.moves.plan.plan import Move
from plugins.module_utils.moves.plan.window import EmptiedHost, Window, plan_window

from . import gpus

HOSTS = [f"esx{number}" for number in range(1, 6)]
At = Mapping[str, str]


def fleet_of(
    slots: Mapping[str, int], at: At, allowed: Mapping[str, Collection[str]] | None = None, **more: Any
) -> Fleet:
    """Return workers of one slot each, without memory, that may use all hosts or the given ones."""
    rooms = {host: HostRoom((number, 0, 0)) for host, number in slots.items()}
    given = allowed or {}
    return Fleet({name: MovingWorker((1, 0, 0), frozenset(given.get(name, slots))) for name in at}, rooms, **more)


def plan(at: At, hosts: Collection[str], slots: int = 1, **more: Any) -> list[EmptiedHost]:
    return plan_window(fleet_of(dict.fromkeys(HOSTS, slots), at, **more), at, list(hosts), HOSTS)


def test_spare_host_goes_first_without_double_moves() -> None:
    at = {f"w{number}": f"esx{number}" for number in range(1, 5)}

    found = plan(at, HOSTS)

    assert found[0] == EmptiedHost("esx5", ())
    assert found[1] == EmptiedHost("esx1", (Move("w1", "esx1", "esx5"),))
    assert sorted(move.worker for change in found for move in change.moves) == sorted(at)
    check(fleet_of(dict.fromkeys(HOSTS, 1), at), at, found)


def test_window_empties_a_host_twice_if_necessary() -> None:
    """Worker a leaves esx3 free for b only if it returns home before esx3 is changed."""
    at = {"a": "esx1", "b": "esx2"}
    fleet = fleet_of({"esx1": 1, "esx2": 1, "esx3": 1}, at, {"a": ["esx1", "esx3"], "b": ["esx2", "esx3"]})

    found = plan_window(fleet, at, sorted(fleet.hosts), fleet.hosts)

    check(fleet, at, found)
    assert sum(len(change.moves) for change in found) == oracle(fleet, at, sorted(fleet.hosts), list(fleet.hosts)) == 3


def test_names_the_workers_without_room_elsewhere() -> None:
    at = {f"w{number}": f"esx{number}" for number in range(1, 6)}
    with pytest.raises(Infeasible, match=r"no other host has room for w1 on esx1, w2 on esx2, .* \(GPU slots\); free"):
        plan(at, HOSTS)
    with pytest.raises(
        Infeasible, match=r"no order empties esx1: no other host has room for w1 on esx1 \(no other host"
    ):
        plan_window(fleet_of(dict.fromkeys(HOSTS, 2), at), at, ["esx1"], ["esx1"])


@pytest.mark.parametrize(("full", "last"), [(8, "on esx8"), (9, "on esx8, 1 more")])
def test_refusal_names_at_most_eight_reasons(full: int, last: str) -> None:
    rooms = {f"esx{number}": HostRoom((1, 0, 0), gpus=gpus.room_of(["grid_t4-16c"])) for number in range(1, full + 1)}
    hosts = {"esx0": HostRoom((1, 0, 0), gpus=gpus.room_of([])), **rooms}
    fleet = Fleet({"w": MovingWorker((1, 0, 0), frozenset(hosts), profiles=("grid_t4-16c",))}, hosts)

    with pytest.raises(Infeasible, match=rf"w on esx0 \(GPUs for grid_t4-16c on esx1, .* {last}\); free"):
        plan_window(fleet, {"w": "esx0"}, ["esx0"], hosts)


def test_workers_move_to_no_host_that_is_left_out() -> None:
    fleet = fleet_of({"esx1": 1, "esx2": 1, "esx3": 1}, {"a": "esx1"})

    assert fleet.without(["esx2"]).workers["a"].targets == {"esx1", "esx3"}
    assert fleet.without([]) is fleet


def test_names_a_worker_on_its_current_host() -> None:
    """Worker a must go to esx2 before b can leave it, and is stuck there when esx2 is emptied."""
    at = {"a": "esx1", "b": "esx2"}
    fleet = fleet_of({"esx1": 1, "esx2": 2}, at, {"a": ["esx2"], "b": ["esx1"]})
    with pytest.raises(
        Infeasible, match=r"no other host has room for a on esx1 \(a VM-host rule or the linked vGPUs\)"
    ):
        plan_window(fleet, at, ["esx1", "esx2"], ["esx1", "esx2"])


def test_returned_host_takes_workers_after_its_change() -> None:
    at = {"w1": "esx1", "w2": "esx2"}
    places = fleet_of(dict.fromkeys(["esx1", "esx2", "esx3"], 1), at)
    assert plan_window(places, at, ["esx1", "esx2", "esx3"], ["esx1", "esx2"])[0] == EmptiedHost("esx3", ())
    with pytest.raises(Infeasible):
        plan_window(places, at, ["esx1", "esx2"], ["esx1", "esx2"])


def test_a_refusal_names_the_rule_or_the_resource() -> None:
    at = {"w1": "esx1", "w2": "esx2"}
    two = fleet_of({"esx1": 2, "esx2": 2}, at, apart=(frozenset(at),))
    small = {host: HostRoom((2, memory, 0)) for host, memory in (("esx1", 8), ("esx2", 7))}
    for fleet, words in (
        (two, "an anti-affinity rule"),
        (replace(two, apart=(), one_per_host=True), "one worker per host"),
        (Fleet({name: MovingWorker((1, 4, 0), frozenset(small)) for name in at}, small), "MB of memory"),
    ):
        with pytest.raises(Infeasible, match=rf"no other host has room for w1 on esx1 \({words}\)"):
            plan_window(fleet, at, ["esx1"], ["esx1", "esx2"])


def ring(hosts: int, spare: int) -> tuple[Fleet, dict[str, str], list[str]]:
    """Return hosts with one worker each that may only go to the next two, and spare hosts that few workers may use."""
    names = [f"esx{number:02}" for number in range(hosts + spare)]
    at = {f"w{number:02}": names[number] for number in range(hosts)}
    allowed = {
        worker: {names[number], names[(number + 1) % hosts], names[(number + 5) % hosts]}
        for number, worker in enumerate(at)
    }
    allowed[f"w{hosts - 1:02}"] |= set(names[hosts:])
    return fleet_of(dict.fromkeys(names, 1), at, allowed), at, names[:hosts]


def test_orders_twelve_hosts_with_device_groups() -> None:
    fleet, at, hosts = ring(10, 2)
    found = plan_window(fleet, at, hosts, fleet.hosts)
    check(fleet, at, found)
    assert sum(len(change.moves) for change in found) == 10


def test_reports_an_abandoned_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "EFFORT", 40)
    fleet, at, hosts = ring(10, 2)
    with pytest.raises(
        Infeasible, match=r"no order that empties .* was found within \d+ tries, although one may exist"
    ):
        plan_window(fleet, at, hosts, fleet.hosts)


def check(fleet: Fleet, at: At, found: list[EmptiedHost]) -> None:
    """Follow the plan: each move starts where the worker is, keeps the rules, and each host is empty at its change."""
    now = dict(at)
    for change in found:
        for move in change.moves:
            assert now[move.worker] == move.source == change.host != move.target
            assert may_go(fleet, move.worker, move.target, now)
            now[move.worker] = move.target
        assert change.host not in now.values()
    if all(room.gpus for room in fleet.hosts.values()):
        gpus.follow(fleet, at, [move for change in found for move in change.moves])


def may_go(fleet: Fleet, worker: str, host: str, at: At) -> bool:
    """Return whether a host has room for a worker and the rules allow it there."""
    there = [name for name, place in at.items() if place == host and name != worker]
    together = [*there, worker]
    totals = [sum(fleet.workers[name].needs[index] for name in together) for index in range(3)]
    is_apart = all(len(group.intersection(together)) < 2 for group in fleet.apart if worker in group)
    has_room = all(total <= has for total, has in zip(totals, fleet.hosts[host].has, strict=True))
    is_open = host in fleet.workers[worker].targets and not (fleet.one_per_host and there)
    return is_open and has_room and is_apart and gpus.surely(fleet, worker, host, there)


@st.composite
def windows(draw: Any) -> tuple[Fleet, dict[str, str], list[str], list[str]]:
    """Draw up to four hosts and workers with memory and rules, the hosts to be emptied, and those in service."""
    names = HOSTS[: draw(st.integers(2, 4))]
    rooms = {name: HostRoom((draw(st.integers(0, 3)), draw(st.sampled_from((8, 16, 24))), 10)) for name in names}
    workers: dict[str, MovingWorker] = {}
    at: dict[str, str] = {}
    for number in range(draw(st.integers(0, 4))):
        home = draw(st.sampled_from(names))
        targets = draw(st.one_of(st.just(set(names)), st.sets(st.sampled_from(names)))) | {home}
        workers[f"w{number}"] = MovingWorker(
            (draw(st.integers(1, 2)), draw(st.sampled_from((0, 8, 12))), draw(st.sampled_from((0, 6)))),
            frozenset(targets),
        )
        at[f"w{number}"] = home
    apart = (
        tuple(draw(st.lists(st.frozensets(st.sampled_from(sorted(at)), min_size=2), max_size=1))) if len(at) > 1 else ()
    )
    fleet = Fleet(workers, rooms, apart=apart, one_per_host=draw(st.booleans()))
    hosts = draw(st.sets(st.sampled_from(names), min_size=1))
    closed = draw(st.sets(st.sampled_from(names), max_size=1)) - set(at.values())
    return fleet, at, sorted(hosts), [name for name in names if name not in closed]


@settings(max_examples=250, deadline=None)
@given(windows())
def test_plan_keeps_the_rules_with_the_fewest_moves(window: tuple[Fleet, dict[str, str], list[str], list[str]]) -> None:
    check_window(*window)


@settings(max_examples=250, deadline=None)
@given(gpus.fleets())
def test_window_of_several_profiles_needs_the_fewest_moves(drawn: tuple[Fleet, dict[str, str], list[str]]) -> None:
    check_window(*drawn, list(drawn[0].hosts))


def check_window(fleet: Fleet, at: At, hosts: list[str], serving: list[str]) -> None:
    """Compare a plan with the one that trying everything finds."""
    fewest = oracle(fleet, at, hosts, serving)
    if fewest is None:
        with pytest.raises(Infeasible, match="no order empties"):
            plan_window(fleet, at, hosts, serving)
        return
    found = plan_window(fleet, at, hosts, serving)
    assert sorted(change.host for change in found) == hosts
    check(fleet, at, found)
    assert sum(len(change.moves) for change in found) == fewest


def oracle(fleet: Fleet, at: At, hosts: list[str], serving: list[str]) -> int | None:
    """Return the fewest moves of any order and any targets; None if no plan exists."""

    def empty(host: str, rest: tuple[str, ...], now: dict[str, str], closed: frozenset[str]) -> int | None:
        here = [name for name, place in now.items() if place == host]
        if not here:
            return follow(rest, now, closed - {host})
        open_hosts = [name for name in fleet.hosts if name not in {host, *closed}]
        ways = [(worker, name) for worker in here for name in open_hosts if may_go(fleet, worker, name, now)]
        counts = [empty(host, rest, {**now, worker: target}, closed) for worker, target in ways]
        return min((count + 1 for count in counts if count is not None), default=None)

    def follow(order: tuple[str, ...], now: dict[str, str], closed: frozenset[str]) -> int | None:
        return empty(order[0], order[1:], now, closed) if order else 0

    found = [follow(order, dict(at), frozenset(fleet.hosts) - set(serving)) for order in permutations(hosts)]
    return min((count for count in found if count is not None), default=None)


def test_a_plan_for_a_large_cluster_takes_seconds() -> None:
    hosts = [f"esx{number:02}" for number in range(64)]
    at = {f"w{number:03}": hosts[number // 2] for number in range(120)}
    started = time.process_time()
    found = plan_window(fleet_of(dict.fromkeys(hosts, 2), at), at, hosts, hosts)
    assert sum(len(change.moves) for change in found) == 120
    assert time.process_time() - started < 30


def test_large_vgpu_leaves_a_host_before_small_ones() -> None:
    """Small ones that went first could use each GPU of esx2. Hosts with other GPUs are not exchanged."""
    rooms = {"esx1": gpus.room_of([], []), "esx2": gpus.room_of([], []), "esx3": gpus.room_of(["grid_t4-16c"])}
    fleet, at = gpus.three_workers("c", **rooms)
    check_window(fleet, at, ["esx1"], list(rooms))
    assert [move.worker for move in plan_window(fleet, at, ["esx1"], rooms)[0].moves] == ["c", "a", "b"]
    first, second, third = Window.of(fleet, at, (), rooms).host_kinds
    assert first == second != third
