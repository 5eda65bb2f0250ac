"""A rolling move in numbers: workers, hosts and the room on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Step(NamedTuple):
    """The move of a worker from one host to another, as numbers."""

    worker: int
    source: int
    target: int


class Stuck(Exception):
    """Workers cannot move, or not all together; ``is_proven`` is False if the search for a plan was given up."""

    def __init__(self, workers: Iterable[int], is_together: bool = False, is_proven: bool = True) -> None:
        super().__init__()
        self.workers = tuple(workers)
        self.is_together = is_together
        self.is_proven = is_proven

    def renumbered(self, part: list[int]) -> Stuck:
        """Return the same with the numbers of the complete problem."""
        return Stuck([part[worker] for worker in self.workers], self.is_together, self.is_proven)


@dataclass(frozen=True)
class Problem:
    """Workers that must each move at least once, only into free room, and with ``return_home`` end on their first host.

    ``room`` is the room on each host for these workers; ``start``, ``need`` and ``targets`` have one item per worker.
    """

    room: tuple[int, ...]
    start: tuple[int, ...]
    need: tuple[int, ...]
    targets: tuple[frozenset[int], ...]
    return_home: bool

    @property
    def workers(self) -> range:
        return range(len(self.start))

    @property
    def is_single(self) -> bool:
        """Return whether every worker needs exactly one unit of room."""
        return all(need == 1 for need in self.need)

    @property
    def fewest_steps(self) -> int:
        """Return the least length of any plan: one move for each worker, two with ``return_home``."""
        return len(self.start) * (2 if self.return_home else 1)

    def free_at_start(self) -> list[int]:
        """Return the room left on each host before the first step; below zero if too many workers share the host."""
        return self.free(self.start)

    def free(self, at: Sequence[int]) -> list[int]:
        """Return the room left on each host with the workers on these hosts."""
        free = list(self.room)
        for host, need in zip(at, self.need):
            free[host] -= need
        return free

    def part(self, workers: list[int]) -> Problem:
        """Return the same problem for some of the workers that have no host in common with the others."""
        return Problem(
            self.room,
            tuple(self.start[worker] for worker in workers),
            tuple(self.need[worker] for worker in workers),
            tuple(self.targets[worker] for worker in workers),
            self.return_home,
        )


class Groups:
    """Disjoint groups of hosts."""

    def __init__(self, size: int) -> None:
        self._leader = list(range(size))

    def leader_of(self, host: int) -> int:
        while self._leader[host] != host:
            self._leader[host] = self._leader[self._leader[host]]
            host = self._leader[host]
        return host

    def join(self, host: int, other: int) -> None:
        self._leader[self.leader_of(host)] = self.leader_of(other)


def independent_parts(problem: Problem) -> list[list[int]]:
    """Return the workers in groups that never share a host: each group is planned separately."""
    groups = Groups(len(problem.room))
    for targets in set(problem.targets):
        hosts = list(targets)
        for host, other in zip(hosts, hosts[1:]):
            groups.join(host, other)
    for worker in problem.workers:
        home = problem.start[worker]
        groups.join(home, next(iter(problem.targets[worker]), home))
    parts: dict[int, list[int]] = {}
    for worker in problem.workers:
        parts.setdefault(groups.leader_of(problem.start[worker]), []).append(worker)
    return list(parts.values())
