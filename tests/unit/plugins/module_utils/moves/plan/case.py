"""A call of the move planner, and a second, simple implementation of the rules."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st

from plugins.module_utils.moves.plan.plan import Infeasible, Move, plan_moves


@dataclass
class Case:
    """One call of the planner: its arguments, its result, and the check of the result."""

    slots: dict[str, int]
    at: dict[str, str]
    rules: dict[str, Any] = field(default_factory=dict)

    @property
    def chosen(self) -> list[str]:
        movable = self.rules.get("movable")
        return [worker for worker in self.at if movable is None or worker in movable]

    def plan(self) -> list[Move]:
        return plan_moves(self.slots, self.at, **self.rules)

    def may_go(self, at: dict[str, str], worker: str, target: str) -> bool:
        demand = self.rules.get("demand") or {}
        guests = [other for other, host in at.items() if host == target]
        free = self.slots[target] - sum(demand.get(guest, 1) for guest in guests)
        return (
            worker in self.chosen
            and target != at[worker]
            and target in (self.rules.get("allowed") or {}).get(worker, self.slots)
            and free >= demand.get(worker, 1)
            and not (guests and self.rules.get("one_per_host"))
        )

    def is_done(self, at: dict[str, str], moved: frozenset[str]) -> bool:
        return moved == set(self.chosen) and (at == self.at or not self.rules.get("return_home"))

    def look(self) -> tuple[int | None, set[str]]:
        """Try everything; return the length of a shortest plan, None without one, and the workers that ever move."""
        queue = deque([(self.at, frozenset[str](), 0)])
        seen = {(tuple(self.at.values()), frozenset[str]())}
        movers: set[str] = set()
        while queue:
            at, moved, length = queue.popleft()
            if self.is_done(at, moved):
                return length, set(self.chosen)
            for worker in self.chosen:
                for target in self.slots:
                    if self.may_go(at, worker, target):
                        movers.add(worker)
                        state = {**at, worker: target}, moved | {worker}, length + 1
                        key = tuple(state[0].values()), state[1]
                        if key not in seen:
                            seen.add(key)
                            queue.append(state)
        return None, movers

    def check(self) -> None:
        """Assert that the plan is valid and a shortest one, or that the refusal is true."""
        shortest, movers = self.look()
        if shortest is None:
            with pytest.raises(Infeasible) as refusal:
                self.plan()
            assert " cannot move:" not in str(refusal.value) or not movers.intersection(refusal.value.workers)
            return
        plan = self.plan()
        self.assert_valid(plan)
        assert len(plan) == shortest

    def assert_valid(self, plan: list[Move]) -> None:
        at, moved = dict(self.at), set()
        for worker, source, target in plan:
            assert at[worker] == source
            assert self.may_go(at, worker, target), (plan, worker, target)
            at[worker] = target
            moved.add(worker)
        assert self.is_done(at, frozenset(moved)), plan


def row(hosts: int, workers: int, slots: int = 1) -> Case:
    """Return a case in which the first hosts are full and the others empty."""
    return Case({f"h{n}": slots for n in range(hosts)}, {f"w{n}": f"h{n // slots}" for n in range(workers)})


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
