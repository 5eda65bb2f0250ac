"""One worker on each host: a largest matching of workers and hosts, found by augmenting paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol, TypeVar

from .host_room import IGNORE, Demand, HostResources, alike

Key = TypeVar("Key")
Guest = TypeVar("Guest")


class Candidate(Protocol):
    """The fields of a worker that the search for a host needs."""

    @property
    def name(self) -> str: ...

    @property
    def demand(self) -> Demand: ...

    @property
    def hosts(self) -> frozenset[str] | None: ...


def match(hosts: Sequence[HostResources], workers: Sequence[Candidate], same_node: str) -> dict[str, str]:
    """Return the host of each worker that gets one, for as many workers as possible."""
    kinds = DemandGroups(hosts, workers, same_node)
    there: dict[int, int] = {}  # the worker on each host, by their numbers
    hopeless: set[int] = set()
    for number in range(len(workers)):
        # If a worker got no host, another worker with the same demand will not get one either.
        if kinds.of[number] not in hopeless and not _augment(number, kinds, there):
            hopeless.add(kinds.of[number])
    return {workers[number].name: hosts[host].name for host, number in there.items()}


def _augment(start: int, kinds: DemandGroups, there: dict[int, int]) -> bool:
    """Assign a host to one worker; other workers move if necessary."""
    came_from: dict[int, int] = {}  # by host: the worker that reaches for it
    waiting, requested = deque([start]), {kinds.of[start]}
    while waiting:
        worker = waiting.popleft()
        for host in kinds.hosts_of(worker):
            if host in came_from:
                continue
            came_from[host] = worker
            if host not in there:
                shift(host, start, came_from, there)
                return True
            if kinds.of[there[host]] not in requested:
                requested.add(kinds.of[there[host]])
                waiting.append(there[host])
    return False


def shift(host: Key, start: Guest, came_from: dict[Key, Guest], there: dict[Key, Guest]) -> None:
    """Assign the free host along the path: each worker moves to the next host, up to the worker ``start``."""
    before = {worker: place for place, worker in there.items()}
    while True:
        worker = came_from[host]
        there[host] = worker
        if worker == start:
            return
        host = before[worker]


class DemandGroups:
    """The workers by equal demand, and the possible hosts of each group, the best first."""

    def __init__(self, hosts: Sequence[HostResources], workers: Sequence[Candidate], same_node: str) -> None:
        self.all_hosts, self.same_node = hosts, same_node
        known: dict[HostResources, int] = {}
        self.alike = [known.setdefault(alike(host), len(known)) for host in hosts]
        numbers: dict[tuple[Demand, frozenset[str] | None], int] = {}
        self.of = [numbers.setdefault((worker.demand, worker.hosts), len(numbers)) for worker in workers]
        self.fitting = [self._fitting(demand, names) for demand, names in numbers]

    def hosts_of(self, worker: int) -> Sequence[int]:
        return self.fitting[self.of[worker]]

    def _fitting(self, demand: Demand, names: frozenset[str] | None) -> list[int]:
        allowed = [i for i, host in enumerate(self.all_hosts) if names is None or host.name in names]
        examples = {self.alike[i]: self.all_hosts[i] for i in allowed}
        fits = {kind for kind, host in examples.items() if host.take(demand, self.same_node)}
        near = {kind for kind in fits if self.same_node == IGNORE or examples[kind].near(demand)}
        return sorted((i for i in allowed if self.alike[i] in fits), key=lambda i: self.alike[i] not in near)
