"""Plans in which every worker moves at least once, one after another; workers displace others if there is no room."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Tuple

from .problem import Problem, Step

# The number of workers that one may displace in a row: small numbers are tried first.
_DEPTHS = tuple(1 << power for power in range(7))
_Rank = Tuple[int, ...]


def one_way(problem: Problem) -> list[Step] | None:
    """Return the shorter of two plans that begin with different workers; None if neither is found."""
    plans: list[list[Step]] = []
    for layout in (_ScarceFirst(problem), _FullestFirst(problem)):
        if layout.move_all():
            plans.append(layout.steps)
        if len(layout.steps) == len(problem.workers):
            break
    return min(plans, key=len, default=None)


def round_trips(problem: Problem) -> list[Step] | None:
    """Return a plan in which each worker and all that it displaced return before the next one moves; None if none."""
    layout = _ScarceFirst(problem)
    return layout.steps if layout.move_all(and_back=True) else None


class _Layout(ABC):
    """The host of each worker, the free room of each host, and the steps made so far."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.at = list(problem.start)
        self.free = problem.free_at_start()
        self.demand = [0] * len(problem.room)  # the waiting workers that may go to a host
        self.leaving = [0] * len(problem.room)  # the waiting workers on a host
        self.steps: list[Step] = []
        self._guests: list[set[int]] = [set() for _host in problem.room]
        self._moves = [0] * len(problem.start)
        self._waiting: dict[int, set[int]] = {need: set() for need in sorted(set(problem.need), reverse=True)}
        for worker in problem.workers:
            self._guests[problem.start[worker]].add(worker)
            self._set_waiting(worker, True)

    @abstractmethod
    def urgency(self, worker: int) -> _Rank:
        """Return the rank of a waiting worker among those of its size: the lowest moves first."""

    @abstractmethod
    def fitness(self, host: int) -> _Rank:
        """Return the rank of a host with room: the lowest is taken."""

    def move_all(self, and_back: bool = False) -> bool:
        """Move workers with free room first, otherwise one that displaces few others; return whether all moved."""
        while any(self._waiting.values()):
            begin = len(self.steps)
            direct = next(self._with_room(), None)
            waiting = [w for workers in self._waiting.values() for w in sorted(workers, key=self.urgency)]
            if direct is not None:
                self._relocate(direct, 0, set())
            elif not any(self._relocate(worker, depth, set()) for depth in _DEPTHS for worker in waiting):
                return False
            for step in reversed(self.steps[begin:]) if and_back else ():
                self._move(step.worker, step.source)
        return True

    def _with_room(self) -> Iterator[int]:
        """Yield the waiting workers that have room on another host, large ones first."""
        for need, workers in self._waiting.items():
            hosts = {host for host, free in enumerate(self.free) if free >= need}
            for worker in sorted(workers, key=self.urgency) if hosts else ():
                if (hosts & self.problem.targets[worker]) - {self.at[worker]}:
                    yield worker

    def _relocate(self, worker: int, depth: int, busy: set[int]) -> bool:
        """Move a worker if possible and return whether it moved; ``busy`` has the hosts that were already tried."""
        hosts = self.problem.targets[worker].difference(busy, [self.at[worker]])
        need = self.problem.need[worker]
        direct = [host for host in hosts if self.free[host] >= need]
        target = min(direct, key=self.fitness) if direct else next(self._emptied(hosts, need, depth, busy), None)
        if target is not None:
            self._move(worker, target)
        return target is not None

    def _emptied(self, hosts: Iterable[int], need: int, depth: int, busy: set[int]) -> Iterator[int]:
        """Yield the hosts that could be emptied far enough, those with most room first."""
        for host in sorted(hosts, key=lambda host: (-self.free[host], host)) if depth else ():
            if host not in busy and self._make_room(host, need, depth, busy):
                yield host

    def _make_room(self, host: int, need: int, depth: int, busy: set[int]) -> bool:
        """Move guests away and return whether the host has room; if it has none, undo the moves."""
        busy.add(host)
        begin = len(self.steps)
        guests = sorted(self._guests[host], key=lambda guest: (self._moves[guest], -self.problem.need[guest], guest))
        for guest in guests:
            if self.free[host] < need:
                self._relocate(guest, depth - 1, busy)
        if self.free[host] >= need:
            return True
        for step in reversed(self.steps[begin:]):
            self._put(step.worker, step.source, -1)
        del self.steps[begin:]
        return False

    def _move(self, worker: int, target: int) -> None:
        self.steps.append(Step(worker, self.at[worker], target))
        self._put(worker, target, 1)

    def _put(self, worker: int, target: int, moves: int) -> None:
        source, need = self.at[worker], self.problem.need[worker]
        self.at[worker] = target
        self._guests[source].remove(worker)
        self._guests[target].add(worker)
        for host, more in ((source, need), (target, -need)):
            self.free[host] += more
        waited = self._moves[worker] == 0
        self._moves[worker] += moves
        if waited != (self._moves[worker] == 0):
            self._set_waiting(worker, not waited)

    def _set_waiting(self, worker: int, waits: bool) -> None:
        group = self._waiting[self.problem.need[worker]]
        (group.add if waits else group.remove)(worker)
        more = 1 if waits else -1
        self.leaving[self.problem.start[worker]] += more
        for host in self.problem.targets[worker]:
            self.demand[host] += more


class _ScarceFirst(_Layout):
    """Workers first leave hosts that few others may use: other room will be used anyway."""

    def urgency(self, worker: int) -> _Rank:
        return self.demand[self.at[worker]] or len(self.at), -worker

    def fitness(self, host: int) -> _Rank:
        return self.free[host], self.demand[host], host


class _FullestFirst(_Layout):
    """Workers first leave hosts with most waiting workers, and go to such hosts, as their workers must leave anyway."""

    def urgency(self, worker: int) -> _Rank:
        return -self.leaving[self.at[worker]], -worker

    def fitness(self, host: int) -> _Rank:
        return -self.leaving[host], self.free[host], host
