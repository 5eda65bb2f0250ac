# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Single-slot workers: those that can ever move, and the shortest plan in which each of them returns."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from .problem import Problem, Step


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
