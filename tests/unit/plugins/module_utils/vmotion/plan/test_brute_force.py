"""Rolling moves: plans for small layouts of every kind are as short as brute force finds them."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.vmotion.plan import plan as planner

from .case import Case


@st.composite
def cases(draw: st.DrawFn, most_workers: int = 4, most_hosts: int = 4, largest: int = 2) -> Case:
    hosts = [f"h{number}" for number in range(draw(st.integers(1, most_hosts)))]
    slots = {host: draw(st.integers(0, 4)) for host in hosts}
    free = dict(slots)
    at, demand = {}, {}
    for number in range(draw(st.integers(0, most_workers))):
        size = draw(st.integers(1, largest))
        fitting = [host for host in hosts if free[host] >= size]
        if fitting:
            host = draw(st.sampled_from(fitting))
            at[f"w{number}"], demand[f"w{number}"] = host, size
            free[host] -= size
    rules: dict[str, Any] = {"return_home": draw(st.booleans()), "one_per_host": draw(st.booleans())}
    if largest > 1:
        rules["demand"] = demand
    if draw(st.booleans()):
        rules["allowed"] = {worker: draw(st.sets(st.sampled_from(hosts))) for worker in at if draw(st.booleans())}
    if draw(st.booleans()):
        rules["movable"] = [worker for worker in at if draw(st.booleans())]
    return Case(slots, at, rules)


@settings(max_examples=600)
@given(st.one_of(cases(), cases(largest=1), cases(most_workers=5, most_hosts=3, largest=3)))
def test_a_plan_is_valid_and_as_short_as_brute_force_finds(case: Case) -> None:
    case.check()


@settings(max_examples=200)
@given(st.integers(0, 10**9), st.booleans())
def test_tight_layouts_are_planned_as_short_as_brute_force_finds(seed: int, displaces: bool) -> None:
    """Hosts are nearly full and rules unusual: plain random draws yield more such cases than shrinking examples."""
    ways = (planner.one_way, planner.round_trips) if displaces else [lambda _problem: None] * 2
    with mock.patch.multiple(planner, one_way=ways[0], round_trips=ways[1]):
        tight_case(random.Random(seed)).check()


def tight_case(chance: random.Random, workers: int = 5, largest: int = 3) -> Case:
    hosts = [f"h{number}" for number in range(chance.randint(2, workers))]
    size = chance.randint(1, largest)
    slots = {host: chance.choice((1, 1, 2, 3) if size == 1 else (1, 2, 3, 4)) for host in hosts}
    free, at, demand = dict(slots), {}, {}
    spare = chance.randint(0, 2)
    for number in range(workers):
        need = chance.randint(1, size)
        fitting = [host for host in hosts if free[host] >= need]
        if fitting and sum(free.values()) - need >= spare:
            at[f"w{number}"] = chance.choice(fitting)
            demand[f"w{number}"] = need
            free[at[f"w{number}"]] -= need
    rules: dict[str, Any] = {"return_home": chance.random() < 0.3, "one_per_host": chance.random() < 0.2}
    if size > 1:
        rules["demand"] = demand
    if chance.random() < 0.5:
        count = chance.randint(1, len(hosts))
        rules["allowed"] = {w: {*chance.sample(hosts, count), *([h] * chance.randint(0, 1))} for w, h in at.items()}
    return Case(slots, at, rules)
