"""Several workers on a host: a search that places the largest first and never repeats a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .host_room import IGNORE, Demand, HostResources, alike
from .matching import Candidate

# The maximum number of tries, which bounds the time of the search.
PATIENCE = 5_000


def pack(hosts: Sequence[HostResources], workers: Sequence[Candidate], same_node: str) -> dict[str, str]:
    """Return the host of each worker; if they do not all fit, the hosts of those that fit one after another."""
    table = _Table(
        hosts, sorted(workers, key=lambda worker: ([-n for n in worker.demand.size], worker.name)), same_node
    )
    return _search(table) or _greedy(table)


def _search(table: _Table) -> dict[str, str] | None:
    """Search depth first, iteratively: thousands of workers exceed Python's recursion limit."""
    tries: list[Iterator[int]] = [table.options(0)]
    steps = 0
    while tries:
        if len(tries) > len(table.workers):
            return table.names()
        host = next(tries[-1], None)
        steps += 1
        if steps > PATIENCE + len(table.workers):
            break
        if host is None:
            tries.pop()
            table.undo()
            continue
        table.put(host)
        tries.append(table.options(len(tries)))
    table.clear()
    return None


def _greedy(table: _Table) -> dict[str, str]:
    placed: dict[str, str] = {}
    for number, worker in enumerate(table.workers):
        host = next(table.options(number, remember=False), None)
        if host is not None:
            table.put(host, number)
            placed[worker.name] = table.hosts[host].name
    return placed


@dataclass
class _Table:
    """The state of the search: the hosts with the workers placed so far."""

    hosts: Sequence[HostResources]
    workers: Sequence[Candidate]
    same_node: str
    now: list[HostResources] = field(init=False)
    count: list[int] = field(init=False)
    history: list[tuple[int, HostResources]] = field(default_factory=list)
    _ids: dict[HostResources, int] = field(default_factory=dict)
    _fits: dict[tuple[int, Demand], HostResources | None] = field(default_factory=dict)
    _nearby: dict[tuple[int, Demand], bool] = field(default_factory=dict)
    _failed: set[tuple[int, tuple[tuple[int, int], ...]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        sets = list(dict.fromkeys(worker.hosts for worker in self.workers if worker.hosts is not None))
        # Hosts are interchangeable only if the same workers may run on them.
        self.members = [tuple(host.name in names for names in sets) for host in self.hosts]
        self._member_ids: dict[tuple[bool, ...], int] = {}
        for member in self.members:
            self._member_ids.setdefault(member, len(self._member_ids))
        self.clear()

    def clear(self) -> None:
        """Restore the hosts to the state before the search."""
        self.now, self.count, self.history = list(self.hosts), [0] * len(self.hosts), []
        self.kinds = [self._kind(host) for host in self.now]

    def options(self, number: int, *, remember: bool = True) -> Iterator[int]:
        """Yield the possible hosts of a worker, the emptiest first, one of each set of interchangeable hosts."""
        if number >= len(self.workers):
            return
        state = (number, tuple(sorted(self._places())))
        if remember and state in self._failed:
            return
        worker = self.workers[number]
        tried: set[tuple[int, int]] = set()
        for host in sorted(range(len(self.now)), key=lambda i: (self.count[i], not self._near(i, worker.demand))):
            place = (self.kinds[host], self._member_ids[self.members[host]])
            allowed = worker.hosts is None or self.hosts[host].name in worker.hosts
            if place not in tried and allowed and self._after(host, worker.demand):
                tried.add(place)
                yield host
        if remember:
            self._failed.add(state)

    def put(self, host: int, number: int | None = None) -> None:
        """Place the next worker, or the one with this number, on the host."""
        worker = self.workers[len(self.history) if number is None else number]
        before = self.now[host]
        self.history.append((host, before))
        self._set(host, self._after(host, worker.demand) or before, 1)

    def undo(self) -> None:
        if self.history:
            host, before = self.history.pop()
            self._set(host, before, -1)

    def names(self) -> dict[str, str]:
        """Return the host of each placed worker."""
        return {worker.name: self.hosts[host].name for worker, (host, _before) in zip(self.workers, self.history)}

    def _set(self, host: int, state: HostResources, more: int) -> None:
        self.now[host], self.kinds[host] = state, self._kind(state)
        self.count[host] += more

    def _places(self) -> Iterator[tuple[int, int]]:
        return ((kind, self._member_ids[member]) for kind, member in zip(self.kinds, self.members))

    def _kind(self, host: HostResources) -> int:
        return self._ids.setdefault(alike(host), len(self._ids))

    def _near(self, host: int, demand: Demand) -> bool:
        key = (self.kinds[host], demand)
        if self.same_node != IGNORE and key not in self._nearby:
            self._nearby[key] = self.now[host].near(demand)
        return self._nearby.get(key, True)

    def _after(self, host: int, demand: Demand) -> HostResources | None:
        key = (self.kinds[host], demand)
        if key not in self._fits:
            self._fits[key] = self.now[host].take(demand, self.same_node)
        after = self._fits[key]
        return after and _named(after, self.now[host])


def _named(state: HostResources, host: HostResources) -> HostResources:
    """Return the state of an interchangeable host, with the name of this host."""
    if state.name == host.name:
        return state
    return HostResources(**{**vars(state), "name": host.name, "workers": host.workers, "holders": host.holders})
