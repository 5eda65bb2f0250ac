"""Rolling moves: the search finds a shortest plan or any plan, or names the workers that can never move."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.vmotion.plan.problem import Problem, Step, Stuck
from plugins.module_utils.vmotion.plan.search import any_plan, shortest_plan

State = tuple[tuple[int, ...], int]
EFFORT = "plugins.module_utils.vmotion.plan.search.EFFORT"


def steps_from(case: Problem, at: tuple[int, ...]) -> list[Step]:
    free = list(case.room)
    for worker, host in enumerate(at):
        free[host] -= case.need[worker]
    return [
        Step(worker, host, target)
        for worker, host in enumerate(at)
        for target in case.targets[worker]
        if target != host and free[target] >= case.need[worker]
    ]


def look(case: Problem) -> tuple[int | None, set[int]]:
    """Try everything; return the length of a shortest plan (None without one) and the workers that ever move."""
    everyone, start = (1 << len(case.start)) - 1, (case.start, 0)
    queue: deque[tuple[State, int]] = deque([(start, 0)])
    seen, movers = {start}, set()
    while queue:
        (at, moved), length = queue.popleft()
        if moved == everyone and (at == case.start or not case.return_home):
            return length, set(case.workers)
        for worker, _source, target in steps_from(case, at):
            movers.add(worker)
            state = (*at[:worker], target, *at[worker + 1 :]), moved | 1 << worker
            if state not in seen:
                seen.add(state)
                queue.append((state, length + 1))
    return None, movers


def is_valid(case: Problem, plan: list[Step]) -> bool:
    at = case.start
    for step in plan:
        if step not in steps_from(case, at) or at[step.worker] != step.source:
            return False
        at = (*at[: step.worker], step.target, *at[step.worker + 1 :])
    return {step.worker for step in plan} == set(case.workers) and (at == case.start or not case.return_home)


def tight(chance: random.Random) -> Problem:
    """Return a few workers on a few hosts with little room left; some are alike."""
    size = chance.choice((1, 2, 3))
    room = [chance.choice((1, 2, 2, 3)) for _host in range(chance.randint(2, 4))]
    free, start, need = list(room), [], []
    for _worker in range(chance.randint(1, 4)):
        desired = chance.randint(1, size)
        fitting = [host for host, left in enumerate(free) if left >= desired]
        if fitting and sum(free) > desired:
            start.append(chance.choice(fitting))
            need.append(desired)
            free[start[-1]] -= desired
    some = [frozenset(chance.sample(range(len(room)), chance.randint(1, len(room)))) for _kind in range(2)]
    targets = [chance.choice([frozenset(range(len(room))), *some]) for _worker in start]
    return Problem(tuple(room), tuple(start), tuple(need), tuple(targets), chance.random() < 0.5)


@settings(max_examples=250)
@given(st.integers(0, 10**9))
def test_a_search_finds_a_plan_whenever_brute_force_does(seed: int) -> None:
    case = tight(random.Random(seed))
    if not case.start:
        return
    length, movers = look(case)
    if length is None:
        with pytest.raises(Stuck) as stuck:
            any_plan(case)
        never = set(case.workers) - movers
        reported = set() if stuck.value.is_together else set(stuck.value.workers)
        assert reported == never if len(set(zip(case.need, case.targets))) == len(case.need) else reported <= never
        assert reported or set(stuck.value.workers) == set(case.workers)
        assert stuck.value.is_proven
        return
    assert is_valid(case, any_plan(case))
    longer = [Step(0, 0, 0)] * (length + 1)
    plan = shortest_plan(case, longer)
    assert is_valid(case, plan)
    assert len(plan) == length
    known = longer[:length]
    assert shortest_plan(case, known) is known


def test_searches_equivalent_states_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six workers that are alike, on six hosts that are alike, and one that can never move."""
    targets = (*(frozenset(range(6)) for _worker in range(6)), frozenset({7}))
    case = Problem((2,) * 7 + (1,), (*range(6), 6), (1,) * 6 + (2,), targets, return_home=False)
    monkeypatch.setattr(EFFORT, 6_000)
    with pytest.raises(Stuck) as stuck:
        any_plan(case)
    assert (stuck.value.workers, stuck.value.is_together, stuck.value.is_proven) == ((6,), False, True)


def test_neither_of_two_equal_workers_with_room_for_one_is_immovable() -> None:
    targets = (frozenset({1}), frozenset({1}), frozenset({3}))
    with pytest.raises(Stuck) as stuck:
        any_plan(Problem((2, 1, 2, 1), (0, 0, 2), (1, 1, 2), targets, return_home=False))
    assert (stuck.value.workers, stuck.value.is_together) == ((2,), False)


@pytest.mark.parametrize("return_home", [False, True])
def test_a_search_goes_for_the_end_first(monkeypatch: pytest.MonkeyPatch, return_home: bool) -> None:
    monkeypatch.setattr(EFFORT, 5_000)
    targets = tuple(frozenset({number, number + 1, (number + 2) % 8}) for number in range(7))
    case = Problem((2,) * 8, tuple(range(7)), (1, 2, 1, 2, 1, 2, 1), targets, return_home)
    plan = shortest_plan(case, [Step(0, 0, 0)] * 28)
    assert is_valid(case, plan)
    assert len(plan) == case.fewest_steps


def test_hosts_of_one_size_to_which_others_may_go_are_not_alike() -> None:
    """A worker that needs all of the second host needs the first host for the workers that went there."""
    targets = (frozenset({0, 1}), frozenset({2}), frozenset({2}), frozenset({1}))
    case = Problem((3, 3, 2, 3), (2, 1, 0, 3), (2, 1, 1, 3), targets, return_home=False)
    assert len(shortest_plan(case, [Step(0, 0, 0)] * 9)) == 4


NARROW = Problem((1, 2, 1), (2, 1), (1, 1), (frozenset({0}), frozenset({0})), return_home=False)


@pytest.mark.parametrize(("effort", "is_proven"), [(-1, False), (7, False), (8, True)])
def test_a_search_counts_each_host_looked_at_and_each_worker_of_a_step_made(
    monkeypatch: pytest.MonkeyPatch, effort: int, is_proven: bool
) -> None:
    """Two of the first place, two steps of two workers from there, and two of the second place."""
    monkeypatch.setattr(EFFORT, effort)
    with pytest.raises(Stuck) as stuck:
        any_plan(NARROW)
    assert (stuck.value.workers, stuck.value.is_together, stuck.value.is_proven) == ((0, 1), True, is_proven)


def test_a_search_that_was_given_up_leaves_the_plan_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Problem((1, 1, 1), (0,), (1,), (frozenset({1, 2}),), return_home=False)
    known = [Step(0, 0, 1), Step(0, 1, 2)]
    assert len(shortest_plan(case, known)) == 1
    monkeypatch.setattr(EFFORT, -1)
    assert shortest_plan(case, known) is known


def test_a_plan_does_not_depend_on_the_order_in_which_hosts_were_given() -> None:
    plans = [
        any_plan(Problem((1,) * 9, (4,), (1,), (frozenset(hosts),), return_home=False)) for hosts in ([0, 8], [8, 0])
    ]
    assert plans[0] == plans[1]
