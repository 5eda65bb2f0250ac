"""Rolling moves: plans that displace workers, without the later search for shorter ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.vmotion.plan import search
from plugins.module_utils.vmotion.plan.displacing import one_way, round_trips
from plugins.module_utils.vmotion.plan.plan import Infeasible
from plugins.module_utils.vmotion.plan.problem import Problem, Step

from .case import Case
from .test_brute_force import tight_case


def problem(
    room: list[int], start: list[int], targets: list[set[int]] | None = None, need: list[int] | None = None
) -> Problem:
    everywhere = frozenset(host for host, slots in enumerate(room) if slots)
    allowed = [frozenset(hosts) for hosts in targets] if targets else [everywhere] * len(start)
    return Problem(tuple(room), tuple(start), tuple(need or [1] * len(start)), tuple(allowed), return_home=False)


def assert_possible(case: Problem, steps: list[Step] | None) -> None:
    assert steps is not None
    at, free = list(case.start), case.free_at_start()
    for worker, source, target in steps:
        assert at[worker] == source != target
        assert target in case.targets[worker]
        assert free[target] >= case.need[worker]
        at[worker] = target
        free[source] += case.need[worker]
        free[target] -= case.need[worker]
    assert {step.worker for step in steps} == set(case.workers)


@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_everyone_moves_once_wherever_all_can_be_assigned(seed: int) -> None:
    """Each worker that must leave a host beyond the final room of the other hosts costs one more move."""
    chance = random.Random(seed)
    room = [chance.choice((0, 1, 1, 2, 4)) for _host in range(chance.randint(2, 15))]
    places = [host for host, slots in enumerate(room) for _slot in range(slots)]
    chance.shuffle(places)
    start = places[: max(0, len(places) - chance.randint(1, 2))]
    case = problem(room, start)
    plan = one_way(case)
    if start and sum(slots > 0 for slots in room) == 1:
        assert plan is None
        return
    too_many = max((start.count(host) - (sum(room) - room[host]) for host in start), default=0)
    assert_possible(case, plan)
    assert plan is not None
    assert len(plan) == len(start) + max(0, too_many)


@pytest.mark.parametrize(
    ("case", "steps"),
    [
        (problem([1, 1, 1, 1, 1], [0, 1, 2, 3]), 4),
        (problem([1, 1, 1, 1], [0, 1, 3], [{1, 2}, {0}, {2}]), 4),
        (problem([1, 1, 2, 1, 1], [2, 2, 3, 4], [{0}, {1}, {2}, {2}]), 4),
        (problem([4, 4, 4], [0, 1, 1], need=[4, 2, 2]), 3),
        (problem([2, 1], [0, 0]), 3),
        (problem([1, 1, 1], [0]), 1),
        (problem([2, 1, 2], [1, 0], [{0, 1, 2}, {0, 2}], [1, 2]), 2),
        (problem([3, 3, 4, 1, 2], [0, 1, 2], [{0, 1}, {0, 1, 4}, {0, 1}], [3, 2, 3]), 3),
        (problem([1, 1, 2, 2, 1], [3, 3, 1, 0, 2], [{0, 2, 3, 4}, {0, 1, 2, 3}, {*range(5)}, {0, 1}, {1, 2}]), 6),
        (
            problem([1, 2, 1, 2, 1, 2], [1, 1, 5, 5, 2], [{0, 1, 4}, {1, 2, 4, 5}, {0, 5}, {1, 2, 3, 5}, {0, 1, 2, 4}]),
            5,
        ),
        (
            problem(
                [2, 2, 3, 3],
                [2, 3, 1, 3, 0],
                [{1}, {0, 1, 3}, {0, 1, 2}, {0, 1, 2, 3}, {0, 2, 3}],
                [2, 2, 2, 1, 1],
            ),
            6,
        ),
        (
            problem(
                [2, 3, 3, 2, 1, 4],
                [5, 1, 5, 4, 0],
                [{1, 3, 4, 5}, {0, 1}, {0, 1, 4, 5}, {1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}],
                [1, 2, 1, 1, 1],
            ),
            5,
        ),
    ],
    ids=[
        "a row",
        "a circle that no worker can leave for good",
        "walks that cross",
        "two sizes",
        "too many for the other host",
        "one worker",
        "the large one first",
        "one size after the other",
        "one step aside",
        "the room that few may use is kept for them",
        "a way that is given up leaves all as it was",
        "the last of the room for those that need it",
    ],
)
def test_a_plan_has_as_few_steps_as_there_can_be(case: Problem, steps: int) -> None:
    plan = one_way(case)
    assert_possible(case, plan)
    assert plan is not None
    assert len(plan) == steps


FIVE, FOUR, THREE = {*range(5)}, {*range(4)}, {*range(3)}


@pytest.mark.parametrize(
    ("room", "start", "need", "targets", "steps"),
    [
        ([1, 3, 4, 3], [2, 2, 3, 1, 1, 3], [1, 2, 2, 1, 2, 1], [{2, 3}, {1, 2, 3}, {2, 3}, FOUR, {2}, {0, 2}], 8),
        ([2, 2, 3], [2, 1, 2, 2], [1, 2, 1, 1], [{1, 2}, THREE, THREE, THREE], 5),
        ([2, 2, 4, 3, 4], [2, 0, 1, 3, 2, 4], [3, 2, 1, 3, 1, 2], [{2, 3, 4}, FIVE, FIVE, {2, 3, 4}, FIVE, FIVE], 8),
        ([4, 4, 2, 3, 4], [3, 0, 1, 4, 1, 0], [2, 3, 2, 4, 1, 1], [FIVE, {0, 1, 3, 4}, FIVE, {0, 1, 4}, FIVE, FIVE], 7),
        (
            [2, 2, 1, 2, 2],
            [2, 3, 1, 0, 0, 4, 3, 1],
            [1, 1, 1, 1, 1, 1, 1, 1],
            [{0, 2, 3, 4}, {0, 1, 3, 4}, {2, 4}, FIVE, {0, 3}, {3}, {3, 4}, FOUR],
            9,
        ),
        (
            [4, 3, 2, 3, 3, 4, 4],
            [6, 6, 5, 3, 4, 6, 0, 2],
            [1, 1, 3, 2, 3, 1, 2, 2],
            [{1, 2, 4, 5, 6}, {*range(7)}, {0, 5}, {0, 3}, {1, 4}, {0, 1, 4, 5, 6}, {6}, {2, 3}],
            11,
        ),
        (
            [3, 4, 3, 1, 2],
            [1, 2, 4, 0, 1, 0, 4, 3],
            [2, 2, 1, 1, 1, 2, 1, 1],
            [{0, 1}, {4}, {3}, {0, 3}, {1, 2, 3}, {0, 1}, FIVE, {0, 2, 3, 4}],
            12,
        ),
        (
            [4, 2, 2, 3, 3, 3],
            [0, 2, 2, 1, 3, 5, 4, 0, 5, 4],
            [1, 1, 1, 1, 2, 1, 2, 2, 2, 1],
            [
                *({1, 2}, {*range(6)}, FIVE, {0, 1, 3, 4, 5}, {1, 2, 3, 4}, {0, 1, 2, 4, 5}, FOUR),
                *({0, 3, 4}, {2, 3, 4, 5}, {4, 5}),
            ],
            13,
        ),
    ],
)
def test_careful_choices_keep_a_plan_short(
    room: list[int], start: list[int], need: list[int], targets: list[set[int]], steps: int
) -> None:
    """On nearly full hosts, a worse choice of a worker, of a target or of a step to undo costs steps."""
    case = problem(room, start, targets, need)
    plan = one_way(case)
    assert_possible(case, plan)
    assert plan is not None
    assert len(plan) <= steps


def test_round_trips_end_where_they_began() -> None:
    case = problem([4, 4, 3], [0, 0, 1, 1], need=[2, 2, 3, 1])
    plan = round_trips(case)
    assert_possible(case, plan)
    assert plan is not None
    at = list(case.start)
    for step in plan:
        at[step.worker] = step.target
    assert tuple(at) == case.start


@pytest.mark.parametrize("plan", [one_way, round_trips])
def test_there_is_no_plan_if_no_worker_can_make_room(plan: Callable[[Problem], list[Step] | None]) -> None:
    assert plan(problem([2, 1], [0, 1], need=[2, 1])) is None


def length(case: Case, return_home: bool) -> int | None:
    """Return the number of moves of a valid plan; None if no plan is found."""
    case.rules["return_home"] = return_home
    try:
        plan = case.plan()
    except Infeasible:
        return None
    case.assert_valid(plan)
    return len(plan)


@settings(max_examples=40)
@given(st.integers(0, 10**9), st.integers(6, 30))
def test_the_way_out_and_back_is_planned_wherever_the_way_out_is(seed: int, workers: int) -> None:
    """Every plan read backwards undoes itself: if workers may return, they can, with at most twice the moves."""
    case = tight_case(random.Random(seed), workers, largest=4)
    case.rules["one_per_host"] = False
    for worker, hosts in case.rules.get("allowed", {}).items():
        hosts.add(case.at[worker])
    with mock.patch.object(search, "EFFORT", 100_000):
        out, there_and_back = length(case, False), length(case, True)
    assert (out is None) == (there_and_back is None)
    if out is not None and there_and_back is not None:
        assert 2 * len(case.at) <= there_and_back <= 2 * out
