"""Rolling moves: the order in which every worker can move to another host when GPU slots are scarce.

A plan is the shortest possible one for a few workers, and for any number of workers of one size that return or may all
use the same hosts. For many workers of mixed sizes or with different allowed hosts it may be longer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Tuple

from .placement import Infeasible, PlacementError, RollingPlacement, Shortage, listed
from .problem import Problem, Step, Stuck, independent_parts
from .search import Search, SingleMoves

__all__ = ["Infeasible", "Move", "PlacementError", "Shortage", "plan_moves"]

MOST_WORKERS_TO_IMPROVE = 24
# In a search for any plan, each move left counts as this number of moves.
HASTE = 3
# The number of workers that one may displace in a row: small numbers are tried first.
_DEPTHS = tuple(1 << power for power in range(7))
_Rank = Tuple[int, ...]


class Move(NamedTuple):
    """The move of a worker from one host to another."""

    worker: str
    source: str
    target: str


def plan_moves(  # noqa: PLR0913 - each rule of a move has its own name
    slots: Mapping[str, int],
    at: Mapping[str, str],
    *,
    movable: Iterable[str] | None = None,
    demand: Mapping[str, int] | None = None,
    allowed: Mapping[str, Collection[str]] | None = None,
    return_home: bool = False,
    one_per_host: bool = False,
) -> list[Move]:
    """Return moves that bring each movable worker to another host at least once, each into slots free at that time.

    ``slots`` is the total of each host, ``at`` the host of each worker, ``demand`` the slots that a worker takes (1),
    ``allowed`` the hosts that it may use (all). If no plan is found, raise ``Infeasible``.
    """
    demands, permits = dict(demand or {}), dict(allowed or {})
    for option, by_worker in (("demand", demands), ("allowed", permits)):
        _chosen(option, by_worker, at)
    placement = RollingPlacement(
        slots=slots,
        at=at,
        chosen=_chosen("movable", at if movable is None else movable, at),
        demand={worker: demands.get(worker, 1) for worker in at},
        allowed={worker: frozenset(hosts) for worker, hosts in permits.items()},
        return_home=return_home,
        one_per_host=one_per_host,
    )
    placement.check()
    hosts = list(placement.slots)
    return [Move(placement.chosen[worker], hosts[source], hosts[to]) for worker, source, to in _steps(placement)]


def _chosen(option: str, workers: Iterable[str], at: Mapping[str, str]) -> tuple[str, ...]:
    names = set(workers)
    unknown = sorted(names.difference(at))
    if unknown:
        raise PlacementError(f"{option} names {listed(unknown)}, whose host is not given.")
    return tuple(worker for worker in at if worker in names)


def _steps(placement: RollingPlacement) -> list[Step]:
    problem = placement.problem()
    steps: list[Step] = []
    failures: list[Stuck] = []
    for part in independent_parts(problem):
        try:
            steps += [Step(part[worker], source, target) for worker, source, target in _solve(problem.part(part))]
        except Stuck as stuck:  # noqa: PERF203 - each part of the problem may fail
            failures.append(stuck.renumbered(part))
    if failures:
        raise placement.infeasible(
            [placement.chosen[worker] for stuck in failures for worker in stuck.workers],
            is_together=any(stuck.is_together for stuck in failures),
            is_proven=all(stuck.is_proven for stuck in failures),
        )
    return steps


def _solve(problem: Problem) -> list[Step]:
    home_is_open = _check(problem)
    if problem.return_home and problem.is_single:
        return trips(problem, reachable(problem))
    out = one_way(problem)
    loop = round_trips(problem) if out is None and home_is_open else None
    only_out = replace(problem, return_home=False)
    out = _improved(only_out, out or loop or _any_plan(only_out))
    if not problem.return_home:
        return out
    # The reversed plan is a way home: each worker returns to room that no other worker has taken since.
    there_and_back = out + [Step(worker, target, source) for worker, source, target in reversed(out)]
    return _improved(problem, min(there_and_back, loop or there_and_back, key=len))


def _improved(problem: Problem, known: list[Step]) -> list[Step]:
    if len(known) == problem.fewest_steps or len(problem.workers) > MOST_WORKERS_TO_IMPROVE:
        return known
    states = _states(problem)
    found = Search(states).run(states.start, 1, len(known))
    return [node.step for node in found.path()] if found else known


def _any_plan(problem: Problem) -> list[Step]:
    states = _states(problem)
    search = Search(states)
    found = search.run(states.start, HASTE)
    if found is not None:
        return [node.step for node in found.path()]
    stuck = states.never_moved() if not search.is_exhausted else []
    raise Stuck(stuck or problem.workers, is_together=not stuck, is_proven=not search.is_exhausted)


def _states(problem: Problem) -> SingleMoves:
    workers = list(zip(problem.need, problem.targets))
    hosts = [(room, frozenset(kind for kind in workers if host in kind[1])) for host, room in enumerate(problem.room)]
    sorted_targets = [sorted(allowed) for allowed in problem.targets]

    def targets(at: Sequence[int]) -> Callable[[int], list[int]]:
        free = problem.free(at)
        return lambda worker: [host for host in sorted_targets[worker] if free[host] >= problem.need[worker]]

    return SingleMoves(problem.start, problem.workers, (workers, hosts), targets, return_home=problem.return_home)


def _check(problem: Problem) -> bool:
    """Return whether every worker may return; raise ``Stuck`` if it is clear at once that some worker cannot move."""
    free = problem.free_at_start()
    homeless = [w for w, home in enumerate(problem.start) if home not in problem.targets[w] or free[home] < 0]
    if problem.is_single:
        can_move = {reach.worker for reach in reachable(problem)}
        stuck = [worker for worker in problem.workers if worker not in can_move]
    else:
        open_room = sum(free[host] for host in frozenset().union(*problem.targets))
        stuck = [worker for worker, need in enumerate(problem.need) if need > open_room]
    if problem.return_home and homeless:
        stuck = homeless
    if stuck:
        raise Stuck(stuck)
    return not homeless


class Reach(NamedTuple):
    """A worker that can move, its target host, and the worker that must leave that host first, if any."""

    worker: int
    host: int
    after: int | None


def reachable(problem: Problem) -> list[Reach]:
    """Return the workers of a single-slot problem that can ever move, nearest to free room first.

    A host gets free room only when a worker leaves it for free room: a worker that is missing here can never move.
    """
    free_at_start = enumerate(problem.free_at_start())
    open_hosts: deque[tuple[int, int | None]] = deque((host, None) for host, free in free_at_start if free > 0)
    visited_hosts = {host for host, _after in open_hosts}
    waiting = _by_target(problem)
    reached: list[Reach] = []
    moved = set()
    while open_hosts:
        host, after = open_hosts.popleft()
        for worker in waiting[host]:
            home = problem.start[worker]
            if worker in moved or home == host:
                continue
            moved.add(worker)
            reached.append(Reach(worker, host, after))
            if home not in visited_hosts:
                visited_hosts.add(home)
                open_hosts.append((home, worker))
    return reached


def _by_target(problem: Problem) -> list[list[int]]:
    workers: list[list[int]] = [[] for _host in problem.room]
    for worker in problem.workers:
        for host in problem.targets[worker]:
            workers[host].append(worker)
    return workers


def trips(problem: Problem, reached: list[Reach]) -> list[Step]:
    """Return a plan of two moves for each worker; while one is away, workers that need its slot make their trips."""
    inner: dict[int | None, list[Reach]] = {}
    for reach in reached:
        inner.setdefault(reach.after, []).append(reach)
    steps: list[Step] = []
    open_trips = [(reach, False) for reach in reversed(inner.get(None, []))]
    while open_trips:
        (worker, host, _after), is_back = trip = open_trips.pop()
        home = problem.start[worker]
        if is_back:
            steps.append(Step(worker, host, home))
        else:
            steps.append(Step(worker, home, host))
            open_trips.append((trip[0], True))
            open_trips += [(reach, False) for reach in reversed(inner.get(worker, []))]
    return steps


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
