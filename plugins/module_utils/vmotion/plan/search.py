# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Plans from an A* search: the shortest for a few workers, and any plan if displacing workers does not find one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .problem import Problem, Step, Stuck

# The number of possible steps that a search checks: some seconds on one core.
EFFORT = 3_000_000
# In a search for any plan, each worker left counts as this number of steps.
_HASTE = 3


class _State(NamedTuple):
    at: tuple[int, ...]
    moved: int
    length: int
    last: Step | None
    before: _State | None


@dataclass(frozen=True)
class _Kinds:
    """The kind of each worker and of each host: two of one kind can be exchanged without changing the problem."""

    worker: tuple[int, ...]
    host: tuple[int, ...]


def any_plan(problem: Problem) -> list[Step]:
    """Return a plan that need not be the shortest; raise ``Stuck`` if there is none or the search was given up."""
    search = _Search(problem)
    plan = search.run(_HASTE)
    if plan is not None:
        return plan
    stuck = search.never_moved() if not search.is_exhausted else []
    raise Stuck(stuck or problem.workers, is_together=not stuck, is_proven=not search.is_exhausted)


def shortest_plan(problem: Problem, known: list[Step]) -> list[Step]:
    """Return a shortest plan; the known one if none is shorter or the search was given up."""
    return _Search(problem).run(1, len(known)) or known


class _Search:
    """States in the order of the shortest plan that they still allow, the deepest first among equals."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._kinds = _kinds(problem)
        self._targets = [sorted(hosts) for hosts in problem.targets]
        self._all = (1 << len(problem.start)) - 1
        self._ever_moved = 0
        self._effort = 0
        self.is_exhausted = False

    def run(self, haste: int, limit: int | None = None) -> list[Step] | None:
        """Return a plan below the limit, with haste 1 a shortest one; None if none exists or the effort is used up."""
        first = _State(self._problem.start, 0, 0, None, None)
        open_states = {self._bound(first, haste): [first]}
        closed = set()
        while open_states:
            bound = min(open_states)
            if limit is not None and bound >= limit:
                return None
            state = open_states[bound].pop()
            if not open_states[bound]:
                del open_states[bound]
            key = self._key(state)
            if key in closed:
                continue
            closed.add(key)
            self._ever_moved |= state.moved
            if bound == state.length:
                return _steps(state)
            if self._effort > EFFORT:
                self.is_exhausted = True
                return None
            for following in self._following(state):
                open_states.setdefault(self._bound(following, haste), []).append(following)
        return None

    def never_moved(self) -> list[int]:
        """Return the workers that never moved, nor any worker of their kind on a host of the same kind."""
        kinds = [(kind, self._kinds.host[home]) for kind, home in zip(self._kinds.worker, self._problem.start)]
        moved = {kinds[worker] for worker in self._problem.workers if self._ever_moved >> worker & 1}
        return [worker for worker in self._problem.workers if kinds[worker] not in moved]

    def _following(self, state: _State) -> Iterator[_State]:
        problem, at = self._problem, state.at
        free = list(problem.room)
        for worker, host in enumerate(at):
            free[host] -= problem.need[worker]
        visited = set()
        for worker, source in enumerate(at):
            kind = (self._kinds.worker[worker], source, state.moved >> worker & 1)
            if kind in visited:
                continue
            visited.add(kind)
            self._effort += len(self._targets[worker])
            for target in self._targets[worker]:
                if target != source and free[target] >= problem.need[worker]:
                    self._effort += len(at)
                    yield _State(
                        (*at[:worker], target, *at[worker + 1 :]),
                        state.moved | 1 << worker,
                        state.length + 1,
                        Step(worker, source, target),
                        state,
                    )

    def _bound(self, state: _State, haste: int) -> int:
        """Return the least length of a plan through a state; each remaining step counts ``haste`` times."""
        left = bin(self._all & ~state.moved).count("1")
        if not self._problem.return_home:
            return state.length + haste * left
        away = sum(1 for home, host in zip(self._problem.start, state.at) if home != host)
        return state.length + haste * (2 * left + away)

    def _key(self, state: _State) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...]:
        """Return a key that is equal for states that differ only by exchanged workers or hosts of one kind."""
        guests: dict[int, list[tuple[int, int]]] = {}
        for worker, host in enumerate(state.at):
            guests.setdefault(host, []).append((self._kinds.worker[worker], state.moved >> worker & 1))
        return tuple(sorted((self._kinds.host[host], tuple(sorted(here))) for host, here in guests.items()))


def _kinds(problem: Problem) -> _Kinds:
    worker_kinds: dict[object, int] = {}
    workers = tuple(
        worker_kinds.setdefault(
            (problem.need[worker], problem.targets[worker], problem.start[worker] if problem.return_home else None),
            len(worker_kinds),
        )
        for worker in problem.workers
    )
    allowed: list[set[int]] = [set() for _host in problem.room]
    at_home: list[set[int]] = [set() for _host in problem.room]
    for worker in problem.workers:
        for host in problem.targets[worker]:
            allowed[host].add(workers[worker])
        if problem.return_home:
            at_home[problem.start[worker]].add(workers[worker])
    host_kinds: dict[object, int] = {}
    hosts = tuple(
        host_kinds.setdefault((room, frozenset(allowed[host]), frozenset(at_home[host])), len(host_kinds))
        for host, room in enumerate(problem.room)
    )
    return _Kinds(workers, hosts)


def _steps(state: _State) -> list[Step]:
    steps: list[Step] = []
    here: _State | None = state
    while here is not None and here.last is not None:
        steps.append(here.last)
        here = here.before
    return steps[::-1]
