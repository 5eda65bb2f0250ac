"""Rolling moves: plans that displace workers, without the later search for shorter ones."""

from __future__ import annotations

import random
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.moves.plan import plan as planner
from plugins.module_utils.moves.plan import search
from plugins.module_utils.moves.plan.plan import Infeasible

from .case import Case, tight_case

# Each worker must return before the next one can move; displacing one by one finds no plan.
LOOP = Case({"h0": 4, "h1": 3}, {"w0": "h1", "w1": "h0", "w2": "h0"}, {"demand": {"w1": 2, "w2": 2}})


@pytest.mark.parametrize(("return_home", "more", "searched"), [(False, 32, 6), (True, 36, 3)])
def test_displacing_needs_few_moves_more_than_a_search(return_home: bool, more: int, searched: int) -> None:
    """A worse choice of a worker, of a target or of a step to undo costs moves, or leaves a plan to the search."""
    chance, unimproved = random.Random(1), 0
    any_plan = mock.Mock(wraps=planner._any_plan)
    for _case in range(600):
        case = tight_case(chance, chance.randint(5, 8), 4)
        shortest = length(case, return_home)
        if shortest is not None:
            with mock.patch.multiple(planner, MOST_WORKERS_TO_IMPROVE=0, _any_plan=any_plan):
                unimproved += (length(case, return_home) or 0) - shortest
    assert unimproved <= more
    assert any_plan.call_count <= searched


@pytest.mark.parametrize("return_home", [False, True])
def test_round_trips_succeed_where_displacing_fails(return_home: bool) -> None:
    case = Case(LOOP.slots, LOOP.at, {**LOOP.rules, "return_home": return_home})
    unused = mock.Mock(side_effect=AssertionError("the search is not needed"))
    with mock.patch.multiple(planner, MOST_WORKERS_TO_IMPROVE=0, _any_plan=unused):
        plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == 8


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
def test_plans_a_return_wherever_a_way_exists(seed: int, workers: int) -> None:
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
