# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Workers of one slot: those that can ever move, and the shortest plan that brings each of them home again."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from .problem import Problem, Step


class Reach(NamedTuple):
    """A worker that can move, the host that it can go to, and the worker that leaves that host first, if one must."""

    worker: int
    host: int
    after: int | None


def reachable(problem: Problem) -> list[Reach]:
    """The workers of a single-slot problem that can ever move, nearest to free room first.

    A host gets free room only when a worker leaves it for free room: a worker that is not found here can never move.
    """
    free_at_start = enumerate(problem.free_at_start())
    open_hosts: deque[tuple[int, int | None]] = deque((host, None) for host, free in free_at_start if free > 0)
    seen_hosts = {host for host, _after in open_hosts}
    waiting = _by_target(problem)
    found: list[Reach] = []
    moved = set()
    while open_hosts:
        host, after = open_hosts.popleft()
        for worker in waiting[host]:
            home = problem.start[worker]
            if worker in moved or home == host:
                continue
            moved.add(worker)
            found.append(Reach(worker, host, after))
            if home not in seen_hosts:
                seen_hosts.add(home)
                open_hosts.append((home, worker))
    return found


def _by_target(problem: Problem) -> list[list[int]]:
    workers: list[list[int]] = [[] for _host in problem.room]
    for worker in problem.workers:
        for host in problem.targets[worker]:
            workers[host].append(worker)
    return workers


def trips(problem: Problem, reached: list[Reach]) -> list[Step]:
    """A plan of two moves for each worker; while one is out, those that need its slot make their own trips."""
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
