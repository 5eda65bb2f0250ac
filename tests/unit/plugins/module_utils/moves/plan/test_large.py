"""Rolling moves: many workers are planned quickly, with the fewest moves if a formula gives that number."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.moves.plan.plan import Infeasible

from .case import Case, row


@given(st.integers(1, 80), st.integers(1, 4), st.booleans())
def test_one_spare_host_suffices_for_one_slot_workers(hosts: int, slots: int, return_home: bool) -> None:
    case = row(hosts + 1, hosts * slots, slots)
    case.rules["return_home"] = return_home
    plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == len(case.at) * (2 if return_home else 1)


@pytest.mark.parametrize("return_home", [False, True])
@pytest.mark.parametrize("one_per_host", [False, True])
@pytest.mark.parametrize("hosts", [501, 512])
def test_plans_500_workers_within_a_second(hosts: int, return_home: bool, one_per_host: bool) -> None:
    case = row(hosts, 500)
    case.rules = {"return_home": return_home, "one_per_host": one_per_host}
    times = []
    for _lap in range(3):
        begin = time.process_time()
        plan = case.plan()
        times.append(time.process_time() - begin)
    assert min(times) < 1
    case.assert_valid(plan)
    assert len(plan) == (1000 if return_home else 500)


@pytest.mark.parametrize("return_home", [False, True])
@pytest.mark.parametrize("slots", [(4, 4), (8, 8), (1, 4)], ids=["small", "roomy", "full"])
def test_plans_500_workers_of_mixed_sizes_quickly(slots: tuple[int, int], return_home: bool) -> None:
    chance = random.Random(sum(slots))
    demand = {f"w{number}": chance.choice((1, 2, 4)) for number in range(500)}
    at = {f"w{number}": f"h{number}" for number in range(500)}
    hosts = {f"h{number}": chance.choice(slots) for number in range(512)}
    case = Case({**hosts, **{at[w]: max(need, hosts[at[w]]) for w, need in demand.items()}}, at, {"demand": demand})
    case.rules["return_home"] = return_home
    times = []
    for _lap in range(3):
        begin = time.process_time()
        plan = case.plan()
        times.append(time.process_time() - begin)
    assert min(times) < 1
    case.assert_valid(plan)
    assert len(plan) == (1000 if return_home else 500)


@settings(max_examples=60)
@given(st.integers(0, 10**9))
def test_one_slot_workers_need_the_fewest_moves(seed: int) -> None:
    """Each worker that must leave a host beyond the final room of the other hosts costs one more move."""
    chance = random.Random(seed)
    slots = {f"h{number}": chance.randint(0, 5) for number in range(chance.randint(2, 12))}
    slots["h0"] = chance.choice((1, 20, 40))
    places = [host for host, number in slots.items() for _slot in range(number)]
    taken = chance.sample(places, max(0, len(places) - chance.randint(1, 3)))
    case = Case(slots, {f"w{number}": host for number, host in enumerate(taken)})
    case.rules["movable"] = [worker for worker in case.at if chance.random() < 0.9]
    if not (case.chosen and any(case.may_go(case.at, w, host) for w in case.chosen for host in slots)):
        return
    fixed = {host: sum(case.at[w] == host for w in case.at if w not in case.chosen) for host in slots}
    leaving = {host: sum(case.at[w] == host for w in case.chosen) for host in slots}
    room = sum(slots.values()) - sum(fixed.values())
    too_many = max(leaving[host] - (room - (slots[host] - fixed[host])) for host in slots)
    if too_many > 0 and all(slots[host] == fixed[host] for host in slots if leaving[host] < max(leaving.values())):
        with pytest.raises(Infeasible):
            case.plan()
        return
    plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == len(case.chosen) + max(0, too_many)


@pytest.mark.parametrize("seed", range(6))
def test_plans_validly_for_workers_of_odd_sizes(seed: int) -> None:
    chance = random.Random(seed)
    case = Case({f"h{number}": 4 for number in range(61)}, {}, {"demand": {}, "return_home": seed % 2 == 1})
    for host in list(case.slots)[:60]:
        free = 4
        while free:
            worker, need = f"w{len(case.at)}", chance.choice([size for size in (1, 2, 4) if size <= free])
            case.at[worker] = host
            case.rules["demand"][worker] = need
            free -= need
    if seed >= 4:
        case.rules["allowed"] = {w: {*chance.sample(list(case.slots), 20), host} for w, host in case.at.items()}
    plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) <= len(case.at) * (2 if case.rules["return_home"] else 1) * (1 if seed < 4 else 2)


@pytest.mark.parametrize("choices", [4, 12, 40])
@pytest.mark.parametrize("return_home", [False, True])
def test_plans_validly_for_workers_with_restricted_targets(choices: int, return_home: bool) -> None:
    chance = random.Random(choices)
    case = row(130, 120)
    allowed = {w: {*chance.sample(list(case.slots)[:120], choices), host, "h129"} for w, host in case.at.items()}
    case.rules = {"allowed": allowed, "return_home": return_home}
    plan = case.plan()
    case.assert_valid(plan)
    assert len(plan) == 240 if return_home else len(plan) <= 150
