# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rolling moves: the direct construction of plans for workers of one slot, without the search behind it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.logic.moves.problem import Problem, Step
from plugins.module_utils.logic.moves.single import assignment, one_move_each


def problem(room: list[int], start: list[int], targets: list[set[int]] | None = None) -> Problem:
    everywhere = frozenset(host for host, slots in enumerate(room) if slots)
    allowed = [frozenset(hosts) for hosts in targets] if targets else [everywhere] * len(start)
    return Problem(tuple(room), tuple(start), (1,) * len(start), tuple(allowed), return_home=False)


def assert_possible(case: Problem, steps: list[Step]) -> None:
    at, free = list(case.start), case.free_at_start()
    for worker, source, target in steps:
        assert at[worker] == source != target
        assert target in case.targets[worker]
        assert free[target] > 0
        at[worker] = target
        free[source] += 1
        free[target] -= 1
    assert {step.worker for step in steps} == set(case.workers)


@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_everyone_moves_once_wherever_all_can_be_assigned(seed: int) -> None:
    chance = random.Random(seed)
    room = [chance.choice((0, 1, 1, 2, 4)) for _host in range(chance.randint(2, 15))]
    places = [host for host, slots in enumerate(room) for _slot in range(slots)]
    chance.shuffle(places)
    start = places[: max(0, len(places) - chance.randint(1, 2))]
    case = problem(room, start)
    target = assignment(case)
    fullest = max((start.count(host) - (sum(room) - room[host]) for host in start), default=0)
    assert target.count(None) == max(0, fullest)
    if None not in target:
        steps = one_move_each(case, target)
        assert_possible(case, steps)
        assert len(steps) == len(start)


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ([1, 0, 3, 2], 4),
        ([1, 2, 3, 0], 4),
        ([1, 0, 3, 4], 4),
    ],
    ids=["two circles", "one circle", "a circle beside a walk"],
)
def test_circles_of_full_hosts_are_joined_to_free_room(target: list[int | None], steps: int) -> None:
    case = problem([1, 1, 1, 1, 1], [0, 1, 2, 3])
    plan = one_move_each(case, target)
    assert_possible(case, plan)
    assert len(plan) == steps


def test_a_circle_that_nobody_can_leave_for_good_is_broken_by_one_step_more() -> None:
    case = problem([1, 1, 1, 1], [0, 1, 3], [{1, 2}, {0}, {2}])
    plan = one_move_each(case, assignment(case))
    assert_possible(case, plan)
    assert plan == [Step(0, 0, 2), Step(1, 1, 0), Step(0, 2, 1), Step(2, 3, 2)]


def test_walks_that_cross_are_ordered_so_that_none_waits_for_the_other() -> None:
    case = problem([1, 1, 2, 1, 1], [2, 2, 3, 4], [{0}, {1}, {2}, {2}])
    plan = one_move_each(case, assignment(case))
    assert_possible(case, plan)
    assert len(plan) == 4
