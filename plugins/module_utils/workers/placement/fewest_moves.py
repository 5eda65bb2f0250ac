"""The fewest moves of running workers that make room for all workers of a call, if they cannot all stay."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Dict, Optional

from .host_room import HostResources
from .matching import Candidate, DemandGroups

# Moving a running worker costs more than moving any number of workers that are off or change anyway.
RUNNING, OFF = 1_000, 1
# The maximum number of tries of the search for fewer moves; with many workers a try takes longer.
TRIES, LEAST_TRIES = 16_000, 50
Fill = Callable[[Mapping[str, str]], Optional[Dict[str, str]]]


@dataclass
class HostAssignment:
    """One worker on each host: the hosts of each worker with the cost of the move, and the current assignment.

    Each further worker takes the lightest chain of changes, which minimizes the sum of all weights.
    """

    weights: Mapping[str, Mapping[str, int]]
    where: dict[str, str] = field(default_factory=dict)

    def add(self, worker: str) -> bool:
        """Assign a host to one more worker; other workers move only if necessary."""
        there = {host: name for name, host in self.where.items()}
        chain = self._lightest(worker, there)
        if not chain:
            return False
        came_from, free = chain
        host: str | None = free
        while host is not None:
            name, before = came_from[host]
            self.where[name], host = host, before
        return True

    def _lightest(self, worker: str, there: Mapping[str, str]) -> tuple[dict[str, tuple[str, str | None]], str] | None:
        """Return the worker that moves to each host, its old host, and the free host that ends the cheapest chain."""
        costs: dict[str, int] = {}
        came_from: dict[str, tuple[str, str | None]] = {}
        waiting: deque[tuple[str, str | None, int]] = deque([(worker, None, 0)])
        while waiting:
            name, leaves, so_far = waiting.popleft()
            if leaves is not None and so_far > costs[leaves] - self.weights[name][leaves]:
                continue
            for host, weight in self.weights[name].items():
                cost = so_far + weight
                if host != leaves and cost < costs.get(host, 1 << 60):
                    costs[host], came_from[host] = cost, (name, leaves)
                    if host in there:
                        waiting.append((there[host], host, cost - self.weights[there[host]][host]))
        free = [host for host in costs if host not in there]
        return (came_from, min(free, key=lambda host: costs[host])) if free else None


def one_per_host(
    hosts: Sequence[HostResources],
    workers: Sequence[Candidate],
    homes: Mapping[str, str],
    running: Collection[str],
    node: str,
) -> dict[str, str]:
    """Return the host of each worker, one on each; the fewest of ``running``, then of all, leave their ``homes``."""
    kinds = DemandGroups(hosts, workers, node)
    weights: dict[str, dict[str, int]] = {}
    for number, worker in enumerate(workers):
        home, away = homes.get(worker.name), RUNNING if worker.name in running else OFF
        weights[worker.name] = {hosts[index].name: 0 if home is None else away for index in kinds.hosts_of(number)}
        if home is not None:
            weights[worker.name][home] = 0
    assignment = HostAssignment(weights, dict(homes))
    for worker in workers:
        if worker.name not in homes:
            assignment.add(worker.name)
    return assignment.where


def several_per_host(
    homes: Mapping[str, str], running: Collection[str], first: Collection[str], fill: Fill
) -> dict[str, str] | None:
    """Return the host of each worker, several on each, with few moves of ``running``; None if they do not all fit.

    ``fill`` returns the hosts of all workers if the given ones stay on their host; None if they do not all fit. The
    search tries workers on the hosts ``first`` before the others.
    """
    tries = max(LEAST_TRIES, TRIES // (len(homes) + 1))
    for movers in islice(_movers(homes, running, first), tries):
        kept = {name: home for name, home in homes.items() if name not in movers}
        placed = fill(kept)
        if placed is not None:
            return placed
    placed = fill({})
    return None if placed is None else _restored(placed, homes, running, fill, tries)


def _movers(homes: Mapping[str, str], running: Collection[str], first: Collection[str]) -> Iterator[Collection[str]]:
    """Yield the workers that may leave their host: those that do not run, plus none, one or two running workers."""
    idle = [name for name in homes if name not in running]
    stay = sorted((name for name in homes if name in running), key=lambda name: (homes[name] not in first, name))
    for count in range(3):
        yield from (set(idle).union(chosen) for chosen in combinations(stay, count))


def _restored(
    placed: dict[str, str], homes: Mapping[str, str], running: Collection[str], fill: Fill, tries: int
) -> dict[str, str]:
    """Return the placement after moving workers that need not move back to their host, running workers first."""
    kept: dict[str, str] = {}
    for name in sorted(homes, key=lambda name: (name not in running, name))[:tries]:
        again = {**kept, name: homes[name]}
        better = placed if all(placed[each] == home for each, home in again.items()) else fill(again)
        if better is not None:
            placed, kept = better, again
    return placed
