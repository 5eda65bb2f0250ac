"""Rolling moves: the published layout, each rule, and the errors for impossible plans."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.moves.plan import plan as planner
from plugins.module_utils.moves.plan import search
from plugins.module_utils.moves.plan.plan import Infeasible, Move, PlacementError, Shortage, plan_moves
from plugins.module_utils.moves.plan.problem import Problem, Stuck

from .case import Case, cases, row, tight_case

# Each worker must return before the next one can move; displacing one by one finds no plan.
LOOP = Case({"h0": 4, "h1": 3}, {"w0": "h1", "w1": "h0", "w2": "h0"}, {"demand": {"w1": 2, "w2": 2}})


@settings(max_examples=600)
@given(st.one_of(cases(), cases(largest=1), cases(most_workers=5, most_hosts=3, largest=3)))
def test_plan_is_valid_and_shortest_by_brute_force(case: Case) -> None:
    case.check()


@settings(max_examples=200)
@given(st.integers(0, 10**9), st.booleans())
def test_tight_layouts_need_the_fewest_moves(seed: int, displaces: bool) -> None:
    """Hosts are nearly full and rules unusual: plain random draws yield more such cases than shrinking examples."""
    ways = (planner.one_way, planner.round_trips) if displaces else [lambda _problem: None] * 2
    with mock.patch.multiple(planner, one_way=ways[0], round_trips=ways[1]):
        tight_case(random.Random(seed)).check()


def test_refuses_a_layout_without_spare_host() -> None:
    with pytest.raises(Infeasible) as refusal:
        row(4, 4).plan()
    assert str(refusal.value) == (
        "w0, w1, w2 and w3 cannot move: a move needs 1 GPU slot free on another host, but of those that may take them "
        "h0 has 0 of 1 free, h1 has 0 of 1 free, h2 has 0 of 1 free and h3 has 0 of 1 free, and no order of moves "
        "makes room. Add a spare host with 1 GPU slot of this profile that they may go to, or power off a worker on "
        "one of these hosts."
    )
    assert refusal.value.workers == ("w0", "w1", "w2", "w3")
    assert refusal.value.shortages == tuple(Shortage(f"h{number}", 1, 0, 1) for number in range(4))


def test_four_workers_on_five_hosts_move_once_each() -> None:
    assert row(5, 4).plan() == [
        Move("w3", "h3", "h4"), Move("w2", "h2", "h3"), Move("w1", "h1", "h2"), Move("w0", "h0", "h1"),
    ]  # fmt: skip


def test_plans_independent_groups_of_hosts_separately() -> None:
    slots = {f"{group}{number}": 1 for group in "abc" for number in range(41)}
    at = {f"w{host}": host for host in slots if not host.endswith("40")}
    allowed = {worker: [host for host in slots if host[0] == worker[1]] for worker in at}
    case = Case(slots, at, {"allowed": allowed})
    plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == 120
    del slots["b40"]
    allowed.update({worker: [host for host in slots if host[0] == "b"] for worker in at if worker[1] == "b"})
    with pytest.raises(Infeasible) as refusal:
        case.plan()
    assert refusal.value.workers == tuple(f"wb{number}" for number in range(40))


def test_an_empty_selection_needs_no_move() -> None:
    assert plan_moves({"h0": 1}, {"w0": "h0"}, movable=[]) == []
    assert plan_moves({}, {}) == []


def test_plan_does_not_depend_on_option_order() -> None:
    case = row(9, 8)
    names = list(case.slots)
    plans = []
    for order in (names, names[::-1]):
        case.rules = {"allowed": dict.fromkeys(case.at, order), "movable": [*reversed(list(case.at))]}
        plans.append(case.plan())
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("case", "words", "workers"),
    [
        (
            Case({"h0": 4, "h1": 1}, {"w0": "h0"}, {"demand": {"w0": 2}}),
            "w0 cannot move: a move needs 2 GPU slots free on another host, but of those that may take them h1 has 1",
            ("w0",),
        ),
        (
            Case({"h0": 1, "h1": 1}, {"w0": "h0"}, {"allowed": {"w0": ["h0"]}}),
            "w0 cannot move: there is no other host that may take them. Add a spare host with 1 GPU slot",
            ("w0",),
        ),
        (
            Case({"h0": 3, "h1": 4, "h2": 1}, {"w0": "h0", "w1": "h1", "w2": "h1"}, {"demand": {"w0": 3, "w1": 2}}),
            "w0 cannot move: a move needs 3 GPU slots free",
            ("w0",),
        ),
        (
            Case({"h0": 2, "h1": 2}, {"w0": "h0", "w1": "h1"}, {"one_per_host": True}),
            "h0 has 1 of 2 free and w0 on it and h1 has 1 of 2 free and w1 on it",
            ("w0", "w1"),
        ),
        (
            Case({"h0": 1, "h1": 1}, {"w0": "h0"}, {"allowed": {"w0": ["h1"]}, "return_home": True}),
            "w0 cannot move and return: w0 runs on h0 at first, but its allowed hosts do not include it",
            ("w0",),
        ),
        (
            Case({"h0": 2, "h1": 1}, {"w0": "h0", "w1": "h0"}, {"one_per_host": True, "return_home": True}),
            "w0 runs on h0 at first, but another worker runs on it too",
            ("w0", "w1"),
        ),
        (
            Case({"h0": 1, "h1": 2, "h2": 1}, {"w0": "h2", "w1": "h1"}, {"allowed": {"w0": ["h0"], "w1": ["h0"]}}),
            (
                "w0 and w1 cannot all move: a move needs 1 GPU slot free on another host, "
                "but of those that may take them h0 has 1 of 1 free, and no order of moves makes room"
            ),
            ("w0", "w1"),
        ),
        (
            Case({"h0": 2}, {"w0": "h0", "w1": "h0", "w2": "h0"}),
            "The host h0 has 2 GPU slots, but w0, w1 and w2 on it take 3",
            ("w0", "w1", "w2"),
        ),
    ],
)
def test_reports_an_impossible_plan_with_names_and_numbers(case: Case, words: str, workers: tuple[str, ...]) -> None:
    with pytest.raises(Infeasible) as refusal:
        case.plan()
    assert words in str(refusal.value)
    assert refusal.value.workers == workers


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


def test_reports_workers_that_cannot_all_move() -> None:
    assert "cannot all move" in str(two_groups("together", "alone"))
    assert "cannot all move" in str(two_groups("alone", "together"))
    assert "cannot all move" not in str(two_groups("alone", "alone"))


def test_claims_a_proof_only_after_complete_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no order of moves makes room" in str(two_groups("together", "alone"))
    monkeypatch.setattr("plugins.module_utils.moves.plan.search.EFFORT", -1)
    assert "no order of moves that makes room was found" in str(two_groups("together", "alone"))
    assert "no order of moves that makes room was found" in str(two_groups("alone", "together"))
    assert "no order of moves makes room" in str(two_groups("alone", "alone"))


@pytest.mark.parametrize("return_home", [False, True])
def test_abandoned_improvement_keeps_the_known_plan(monkeypatch: pytest.MonkeyPatch, return_home: bool) -> None:
    """Displacing takes one move more than the necessary two."""
    case = Case({"h0": 1, "h1": 1, "h2": 1}, {"w0": "h2", "w1": "h0"}, {"allowed": {"w0": ["h1", "h2"]}})
    case.rules = {"allowed": {"w0": ["h1"]}} if not return_home else {}
    shortest = len(case.plan())
    monkeypatch.setattr("plugins.module_utils.moves.plan.search.EFFORT", -1)
    case.assert_valid(case.plan())
    assert len(case.plan()) == shortest + (not return_home)


def test_searches_equivalent_states_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six workers that are alike, on six hosts that are alike, and one that can never move."""
    monkeypatch.setattr("plugins.module_utils.moves.plan.search.EFFORT", 6_000)
    targets = (*(frozenset(range(6)) for _worker in range(6)), frozenset({7}))
    with pytest.raises(Stuck) as stuck:
        planner._any_plan(Problem((2,) * 7 + (1,), tuple(range(7)), (1,) * 6 + (2,), targets, return_home=False))
    assert (stuck.value.workers, stuck.value.is_together, stuck.value.is_proven) == ((6,), False, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"at": {"w0": "h9"}}, "w0 is on or may go to h9"),
        ({"allowed": {"w0": ["h1", "h8"]}}, "w0 is on or may go to h8"),
        ({"allowed": {"w9": ["h1"]}}, "allowed names w9"),
        ({"demand": {"w9": 1}}, "demand names w9"),
        ({"movable": ["w0", "w9"]}, "movable names w9"),
        ({"demand": {"w0": 0}}, "demand of w0 is 0"),
        ({"demand": {"w0": 1.5}}, "demand of w0 is 1.5"),
        ({"slots": {"h0": 1, "h1": -1}}, "slots of h1 is -1"),
        ({"slots": {"h0": True, "h1": 1}}, "slots of h0 is True"),
    ],
)
def test_an_impossible_placement_is_an_error(arguments: dict[str, Any], words: str) -> None:
    call = {"slots": {"h0": 1, "h1": 1}, "at": {"w0": "h0"}, **arguments}
    with pytest.raises(PlacementError) as error:
        plan_moves(call.pop("slots"), call.pop("at"), **call)
    assert words in str(error.value)


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
