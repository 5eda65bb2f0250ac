"""A requested rolling move: its numbers, the workers that never share a host, and the errors that refuse it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.vmotion.plan.placement import Infeasible, RollingPlacement, Shortage, listed
from plugins.module_utils.vmotion.plan.problem import Problem, Stuck, independent_parts
from plugins.module_utils.vmotion.plan.trips import Reach, reachable, trips


def placement(slots: dict[str, int], at: dict[str, str], **rules: Any) -> RollingPlacement:
    return RollingPlacement(
        slots=slots,
        at=at,
        chosen=rules.get("chosen", tuple(at)),
        demand={**dict.fromkeys(at, 1), **rules.get("demand", {})},
        allowed={worker: frozenset(hosts) for worker, hosts in rules.get("allowed", {}).items()},
        return_home=rules.get("return_home", False),
        one_per_host=rules.get("one_per_host", False),
    )


def numbers(problem: Problem) -> tuple[list[int], list[int], list[int], list[list[int]], bool]:
    targets = [sorted(hosts) for hosts in problem.targets]
    return list(problem.room), list(problem.start), list(problem.need), targets, problem.return_home


def test_workers_that_stay_reduce_the_room() -> None:
    three = placement({"h0": 4, "h1": 6, "h2": 1}, {"a": "h0", "b": "h1", "c": "h1"}, demand={"b": 2, "c": 3})
    assert numbers(three.problem()) == ([4, 6, 1], [0, 1, 1], [1, 2, 3], [[0, 1, 2], [0, 1], [0, 1]], False)
    two = placement(dict(three.slots), dict(three.at), demand={"b": 2, "c": 3}, chosen=("a", "b"), return_home=True)
    assert numbers(two.problem()) == ([4, 3, 1], [0, 1], [1, 2], [[0, 1, 2], [0, 1]], True)


def test_workers_of_one_size_are_counted_in_workers() -> None:
    pair = placement({"h0": 7, "h1": 2, "h2": 1, "h3": 3}, {"a": "h0", "b": "h1"}, demand={"a": 2, "b": 2})
    assert numbers(pair.problem()) == ([3, 1, 0, 1], [0, 1], [1, 1], [[0, 1, 3], [0, 1, 3]], False)


def test_with_one_per_host_a_host_has_room_if_it_has_slots_and_no_worker_stays() -> None:
    rules = {"demand": {"a": 2, "b": 1}, "one_per_host": True, "chosen": ("a", "b")}
    some = placement({"h0": 4, "h1": 4, "h2": 1, "h3": 9}, {"a": "h0", "b": "h1", "c": "h3"}, **rules)
    assert numbers(some.problem()) == ([1, 1, 1, 0], [0, 1], [1, 1], [[0, 1], [0, 1, 2]], False)


def test_a_worker_may_go_to_the_hosts_allowed_to_it_that_have_room_for_it_when_they_are_empty() -> None:
    rules = {"demand": {"a": 2, "b": 3}, "chosen": ("a", "b"), "allowed": {"a": ["h1", "h2", "h3"]}}
    some = placement({"h0": 2, "h1": 4, "h2": 1, "h3": 4}, {"a": "h0", "b": "h1", "c": "h3"}, **rules)
    some = RollingPlacement(**{**vars(some), "demand": {"a": 2, "b": 3, "c": 3}})
    assert numbers(some.problem()) == ([2, 4, 1, 1], [0, 1], [2, 3], [[1], [1]], False)


def test_a_host_without_slots_is_not_refused() -> None:
    placement({"h0": 1, "h1": 0}, {"a": "h0"}).check()


def test_reports_an_overcommitted_host_with_its_numbers() -> None:
    with pytest.raises(Infeasible) as refusal:
        placement({"h0": 2, "h1": 9}, {"a": "h0", "b": "h0", "c": "h1"}, demand={"a": 2}).check()
    assert str(refusal.value) == (
        "The host h0 has 2 GPU slots, but a and b on it take 3: correct the slots, the demand or the placement."
    )
    assert (refusal.value.workers, refusal.value.shortages) == (("a", "b"), (Shortage("h0", 3, 0, 2),))


def test_a_refusal_names_sizes_the_shortfall_of_each_host_and_the_remedy() -> None:
    some = placement({"h0": 9, "h1": 2, "h2": 3}, {"a": "h0", "b": "h0", "c": "h2"}, demand={"a": 8})
    refusal = some.infeasible(["a", "b"], is_together=True, is_proven=False)
    assert str(refusal) == (
        "a and b cannot all move: a move needs 1 to 8 GPU slots free on another host, but of those that may take them "
        "h1 has 2 of 2 free and h2 has 2 of 3 free, and no order of moves that makes room was found. "
        "Add a spare host with 8 GPU slots of this profile that they may go to, "
        "or power off a worker on one of these hosts."
    )
    assert refusal.shortages == (Shortage("h1", 1, 2, 2), Shortage("h2", 1, 2, 3))
    assert some.infeasible(["b", "a"], is_together=True, is_proven=False).shortages == refusal.shortages


def test_a_worker_that_may_return_is_not_refused() -> None:
    shared = {"slots": {"h0": 2, "h1": 1}, "at": {"a": "h0", "b": "h0"}, "return_home": True}
    together = placement(**shared).infeasible(["a"], is_together=False, is_proven=True)
    assert "go home again" not in str(together)
    alone = placement({"h0": 2, "h1": 1}, {"a": "h0"}, return_home=True, one_per_host=True)
    assert "go home again" not in str(alone.infeasible(["a"], is_together=False, is_proven=True))
    refused = placement(**shared, one_per_host=True).infeasible(["a"], is_together=False, is_proven=True)
    assert str(refused) == (
        "a cannot move and return: a runs on h0 at first, but another worker runs on it too. "
        "Change that, or plan without the return."
    )


@pytest.mark.parametrize(
    ("names", "text"),
    [("", ""), ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcdef", "a, b, c, d, e and f"),
     ("abcdefg", "a, b, c, d, e and 2 more")],
)  # fmt: skip
def test_many_names_are_counted(names: str, text: str) -> None:
    assert listed(names) == text


def case(room: list[int], start: list[int], targets: list[set[int]], return_home: bool = False) -> Problem:
    allowed = tuple(frozenset(hosts) for hosts in targets)
    return Problem(tuple(room), tuple(start), (1,) * len(start), allowed, return_home)


@pytest.mark.parametrize(
    ("start", "targets", "parts"),
    [
        ([0, 1], [{2, 3}, {4, 5}], [[0], [1]]),
        ([0, 1], [{2, 3}, {3, 4}], [[0, 1]]),
        ([0, 1, 5], [{2, 3, 4}, {4}, set()], [[0, 1], [2]]),
        ([0, 1], [{1}, {2}], [[0, 1]]),
        ([0, 0], [{1}, {2}], [[0, 1]]),
        ([5, 1, 3], [{4}, {0}, {2}], [[0], [1], [2]]),
        ([0, 1, 2, 3], [{1, 2}, {2, 3}, {4}, {5}], [[0, 1, 2, 3]]),
    ],
)
def test_workers_that_can_never_meet_are_apart(start: list[int], targets: list[set[int]], parts: list[Any]) -> None:
    assert independent_parts(case([1] * 6, start, targets)) == parts


def test_a_part_and_a_refusal_keep_the_numbers_of_the_whole() -> None:
    whole = Problem((1, 2, 3), (0, 1, 2), (1, 2, 3), (frozenset({1}), frozenset({2}), frozenset({0})), True)
    assert numbers(whole.part([2, 0])) == ([1, 2, 3], [2, 0], [3, 1], [[0], [1]], True)
    stuck = Stuck([1, 0], is_together=True, is_proven=False).renumbered([4, 7])
    assert (stuck.workers, stuck.is_together, stuck.is_proven) == ((7, 4), True, False)
    usual = Stuck([1])
    assert (usual.is_together, usual.is_proven) == (False, True)


def test_describes_a_problem() -> None:
    one = case([2, 1], [0, 0, 1], [{1}] * 3)
    assert (one.is_single, one.fewest_steps, one.free_at_start(), list(one.workers)) == (True, 3, [0, 0], [0, 1, 2])
    two = Problem((2, 9), (0, 1), (1, 3), (frozenset({1}), frozenset({0})), True)
    assert (two.is_single, two.fewest_steps, two.free_at_start()) == (False, 4, [1, 6])


def test_workers_are_reached_from_free_room_backwards_and_each_once() -> None:
    row = case([1, 1, 1, 1], [0, 1, 2], [{1}, {2, 1}, {3, 2}])
    assert reachable(row) == [Reach(2, 3, None), Reach(1, 2, 2), Reach(0, 1, 1)]
    shared = case([2, 1, 1], [0, 0, 1], [{2, 1}, {2, 1}, {2}])
    assert reachable(shared) == [Reach(0, 2, None), Reach(1, 2, None), Reach(2, 2, None)]


def test_a_worker_without_free_room_ahead_is_not_reached() -> None:
    assert reachable(case([1, 1, 2], [0, 1, 2], [{1}, {0}, {2}])) == []


def test_a_worker_that_must_stay_does_not_hide_the_next_one() -> None:
    assert reachable(case([1, 2], [1, 0], [{1}, {1}])) == [Reach(1, 1, None)]


def test_each_worker_is_home_again_before_the_next_trip_begins_beside_it() -> None:
    row = case([1, 1, 1], [0, 1], [{1}, {2}], return_home=True)
    assert trips(row, reachable(row)) == [(1, 1, 2), (0, 0, 1), (0, 1, 0), (1, 2, 1)]
    beside = case([1, 1, 1], [0, 1], [{2}, {2}], return_home=True)
    assert trips(beside, reachable(beside)) == [(0, 0, 2), (0, 2, 0), (1, 1, 2), (1, 2, 1)]
    behind = case([1, 1, 1, 1], [0, 1, 2], [{2}, {2}, {3}], return_home=True)
    assert trips(behind, reachable(behind)) == [
        (2, 2, 3), (0, 0, 2), (0, 2, 0), (1, 1, 2), (1, 2, 1), (2, 3, 2),
    ]  # fmt: skip
