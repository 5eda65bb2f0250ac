"""Rolling moves: the choice of the planning method, the improvement of a plan, and the error for several groups."""

from __future__ import annotations

from unittest import mock

import pytest

from plugins.module_utils.vmotion.plan import plan as planner
from plugins.module_utils.vmotion.plan.plan import Infeasible, PlacementError, plan_moves
from plugins.module_utils.vmotion.plan.problem import Problem, Step
from plugins.module_utils.vmotion.plan.search import shortest_plan

from .case import Case, row

# Each worker must return before the next one can move; displacing one by one finds no plan.
LOOP = Case({"h0": 4, "h1": 3}, {"w0": "h1", "w1": "h0", "w2": "h0"}, {"demand": {"w1": 2, "w2": 2}})
# Displacing takes one step more than the necessary two.
DETOUR = Case({"h0": 1, "h1": 1, "h2": 1}, {"w0": "h2", "w1": "h0"}, {"allowed": {"w0": ["h1"]}})


def test_names_unknown_facts_in_order() -> None:
    with pytest.raises(PlacementError, match="movable names w1, w2, w3, w4 and w5, whose host is not given"):
        plan_moves({"h0": 1}, {"w0": "h0"}, movable=[f"w{number}" for number in (3, 1, 5, 4, 2)])


def two_groups(first: str, second: str) -> Infeasible:
    """Return the error for two groups of hosts that share no worker, each stuck for a different reason."""
    kinds = {
        "together": ({"h0": 1, "h1": 2, "h2": 1}, {"w0": "h2", "w1": "h1"}, {"w0": ["h0"], "w1": ["h0"]}),
        "alone": ({"h0": 1, "h1": 1}, {"w0": "h0"}, {"w0": ["h1", "h0"]}),
    }
    slots, at, allowed = {}, {}, {}
    for group, kind in (("a", first), ("b", second)):
        hosts, workers, rules = kinds[kind]
        slots |= {group + host: number for host, number in hosts.items()}
        at |= {group + worker: group + host for worker, host in workers.items()}
        allowed |= {group + worker: [group + host for host in given] for worker, given in rules.items()}
    full = {f"{group}x": f"{group}h1" for group, kind in (("a", first), ("b", second)) if kind == "alone"}
    with pytest.raises(Infeasible) as refusal:
        plan_moves(slots, {**at, **full}, movable=at, allowed=allowed)
    return refusal.value


def test_reports_workers_that_cannot_all_move_next_to_an_immovable_one() -> None:
    assert "cannot all move" in str(two_groups("together", "alone"))
    assert "cannot all move" in str(two_groups("alone", "together"))
    assert "cannot all move" not in str(two_groups("alone", "alone"))


def test_claims_a_proof_only_if_every_group_was_searched_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no order of moves makes room" in str(two_groups("together", "alone"))
    monkeypatch.setattr("plugins.module_utils.vmotion.plan.search.EFFORT", -1)
    assert "no order of moves that makes room was found" in str(two_groups("together", "alone"))
    assert "no order of moves that makes room was found" in str(two_groups("alone", "together"))
    assert "no order of moves makes room" in str(two_groups("alone", "alone"))


def test_round_trips_serve_where_displacing_finds_no_way_out() -> None:
    with mock.patch.object(planner, "any_plan", side_effect=AssertionError("the search is not needed")):
        plan = LOOP.plan()
    LOOP.assert_valid(plan)
    assert len(plan) == LOOP.shortest()


def test_round_trips_are_home_already() -> None:
    case = Case(LOOP.slots, LOOP.at, {**LOOP.rules, "return_home": True})
    with mock.patch.object(planner, "MOST_WORKERS_TO_IMPROVE", 0):
        plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == 8


def test_the_shorter_of_two_ways_home_is_improved() -> None:
    case = Case(LOOP.slots, LOOP.at, {**LOOP.rules, "return_home": True})
    known: list[int] = []

    def improved(problem: Problem, steps: list[Step]) -> list[Step]:
        known.append(len(steps))
        return shortest_plan(problem, steps)

    with mock.patch.object(planner, "shortest_plan", improved):
        case.assert_valid(case.plan())
    assert known == [8, 8]


@pytest.mark.parametrize(("most", "moves"), [(1, 3), (2, 2)])
def test_a_plan_of_few_workers_is_made_the_shortest_there_is(most: int, moves: int) -> None:
    with mock.patch.object(planner, "MOST_WORKERS_TO_IMPROVE", most):
        plan = DETOUR.plan()
    DETOUR.assert_valid(plan)
    assert len(plan) == moves


def test_workers_of_one_slot_come_home_again_by_the_fewest_moves() -> None:
    case = row(4, 3)
    case.rules = {"return_home": True}
    plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == 6
