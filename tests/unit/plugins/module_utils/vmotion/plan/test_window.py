# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a maintenance window: every host is empty before its change, and no worker moves more than it must."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.vmotion.plan.placement import Infeasible
from plugins.module_utils.vmotion.plan.plan import Move
from plugins.module_utils.vmotion.plan.window import EmptiedHost, HostSlots, plan_window

HOSTS = [f"esx{number}" for number in range(1, 6)]


def fleet(slots: int = 1, **more: object) -> HostSlots:
    return HostSlots(dict.fromkeys(HOSTS, slots), {}, HOSTS, **more)  # type: ignore[arg-type]


def test_a_spare_host_goes_first_and_each_worker_moves_once() -> None:
    at = {f"w{number}": f"esx{number}" for number in range(1, 5)}
    plan = plan_window(fleet(), at, HOSTS)
    assert plan[0] == EmptiedHost("esx5", ())
    assert plan[1] == EmptiedHost("esx1", (Move("w1", "esx1", "esx5"),))
    assert sorted(move.worker for change in plan for move in change.moves) == sorted(at)
    check(fleet(), at, plan)


def test_a_host_without_a_change_takes_workers_for_good() -> None:
    plan = plan_window(fleet(2), {"w1": "esx1", "w2": "esx2"}, ["esx1", "esx2"])
    assert sorted(move.worker for change in plan for move in change.moves) == ["w1", "w2"]
    (first, *_others) = plan[0].moves
    assert first.target in {"esx3", "esx4", "esx5"}


def test_a_large_cluster_is_planned_with_one_move_for_each_worker() -> None:
    hosts = [f"esx{number:02}" for number in range(65)]
    at = {f"w{number:02}": hosts[number] for number in range(64)}
    plan = plan_window(HostSlots(dict.fromkeys(hosts, 1), {}, hosts), at, hosts)
    assert sum(len(change.moves) for change in plan) == 64


def test_without_room_the_workers_that_cannot_leave_are_named() -> None:
    at = {f"w{number}": f"esx{number}" for number in range(1, 6)}
    with pytest.raises(Infeasible, match="no other host has room for w1 on esx1, w2 on esx2"):
        plan_window(fleet(), at, HOSTS)
    with pytest.raises(Infeasible, match="w1 on esx1"):
        plan_window(HostSlots(dict.fromkeys(HOSTS, 2), {}, ["esx1"]), at, ["esx1"])


def test_a_host_that_is_out_of_service_takes_workers_after_its_change() -> None:
    at = {"w1": "esx1", "w2": "esx2"}
    places = HostSlots(dict.fromkeys(["esx1", "esx2", "esx3"], 1), {}, ["esx1", "esx2"])
    plan = plan_window(places, at, ["esx1", "esx2", "esx3"])
    assert plan[0] == EmptiedHost("esx3", ())
    with pytest.raises(Infeasible):
        plan_window(places, at, ["esx1", "esx2"])


def test_two_small_workers_need_two_places() -> None:
    places = HostSlots({"esx1": 2, "esx2": 1, "esx3": 1}, {}, ["esx1", "esx2", "esx3"], one_per_host=True)
    plan = plan_window(places, {"a": "esx1", "b": "esx1"}, ["esx1"])
    assert {move.target for move in plan[0].moves} == {"esx2", "esx3"}


def check(places: HostSlots, at: dict[str, str], plan: list[EmptiedHost]) -> None:
    """Follow the plan: each move starts where the worker is, ends in room, and each host is empty at its change."""
    now = dict(at)
    for change in plan:
        for move in change.moves:
            assert now[move.worker] == move.source == change.host != move.target
            assert places.has_room(move.target, move.worker, now)
            now[move.worker] = move.target
        assert change.host not in now.values()


@settings(max_examples=150, deadline=None)
@given(
    slots=st.lists(st.integers(0, 3), min_size=2, max_size=4),
    places=st.lists(st.integers(0, 3), max_size=4),
    changed=st.sets(st.integers(0, 3), min_size=1),
)
def test_a_plan_is_followed_and_no_order_of_hosts_needs_fewer_moves(
    slots: list[int], places: list[int], changed: set[int]
) -> None:
    names = [f"esx{index}" for index in range(len(slots))]
    at = {f"w{index}": names[place % len(names)] for index, place in enumerate(places)}
    full = {name: max(room, list(at.values()).count(name)) for name, room in zip(names, slots, strict=True)}
    places_ = HostSlots(full, {}, names)
    hosts = sorted({names[index % len(names)] for index in changed})
    fewest = oracle(places_, at, hosts)
    if fewest is None:
        with pytest.raises(Infeasible):
            plan_window(places_, at, hosts)
        return
    plan = plan_window(places_, at, hosts)
    assert sorted(change.host for change in plan) == hosts
    check(places_, at, plan)
    assert sum(len(change.moves) for change in plan) == fewest


def oracle(places: HostSlots, at: dict[str, str], hosts: list[str]) -> int | None:
    """Return the fewest moves of any order and any targets; None if no plan exists."""

    def empty(host: str, rest: tuple[str, ...], now: dict[str, str]) -> int | None:
        worker = next((name for name, place in now.items() if place == host), None)
        if worker is None:
            return follow(rest, now)
        ways = [name for name in places.slots if name != host and places.has_room(name, worker, now)]
        counts = [empty(host, rest, {**now, worker: target}) for target in ways]
        return min((count + 1 for count in counts if count is not None), default=None)

    def follow(order: tuple[str, ...], now: dict[str, str]) -> int | None:
        return empty(order[0], order[1:], now) if order else 0

    found = [follow(order, at) for order in permutations(hosts)]
    return min((count for count in found if count is not None), default=None)
