# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plan of a maintenance window: the order of the hosts, and the moves that empty each of them; pure.

A worker that moves to a host whose change is done, or that needs none, does not move again. The plan has the fewest
moves that the search finds within its limit; for up to eight hosts with one worker each that is the optimum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .placement import Infeasible, listed
from .plan import Move

# Placements that the search tries before it takes the best plan so far.
MOST_TRIED = 20_000


class EmptiedHost(NamedTuple):
    """A host that leaves service, and the moves that empty it before."""

    host: str
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class HostSlots:
    """The slots of each host, the slots that each worker takes, and the hosts that may take workers now."""

    slots: Mapping[str, int]
    demand: Mapping[str, int]
    targets: Collection[str]
    one_per_host: bool = False
    # The only hosts that a worker may move to, for workers that cannot move to all.
    allowed: Mapping[str, Collection[str]] = field(default_factory=dict)

    def has_room(self, host: str, worker: str, at: Mapping[str, str]) -> bool:
        """Return whether a host may take a worker, and has free slots for it."""
        if host not in self.allowed.get(worker, (host,)):
            return False
        there = [other for other, place in at.items() if place == host]
        free = self.slots.get(host, 0) - sum(self.demand.get(other, 1) for other in there)
        return self.demand.get(worker, 1) <= free and not (self.one_per_host and there)


@dataclass
class _Search:
    """A depth-first search for the plan with the fewest moves."""

    capacity: HostSlots
    hosts: frozenset[str]
    least: int
    best: list[EmptiedHost] | None = None
    tried: int = 0
    # By the number of hosts left: the hosts that could not be emptied, each with a worker that found no room.
    stuck: dict[int, dict[str, str]] = field(default_factory=dict)

    def run(self, waiting: Sequence[str], at: Mapping[str, str], done: tuple[EmptiedHost, ...] = ()) -> None:
        """Extend a plan by each of the waiting hosts, those with the fewest workers first."""
        if not waiting:
            if self.best is None or _moves(done) < _moves(self.best):
                self.best = list(done)
            return
        for host in sorted(waiting, key=lambda name: (_workers_on(name, at), name)):
            left = [name for name in waiting if name != host]
            for moves, after in self._ways(host, left, at):
                self.tried += 1
                if self.tried > MOST_TRIED or (self.best is not None and _moves(self.best) == self.least):
                    return
                if self._may_improve(done, moves, left, after):
                    self.run(left, after, (*done, EmptiedHost(host, moves)))

    def _may_improve(
        self, done: Sequence[EmptiedHost], moves: Sequence[Move], left: Sequence[str], at: Mapping[str, str]
    ) -> bool:
        """Return whether this plan may need fewer moves: each worker on a waiting host moves at least once more."""
        least = _moves(done) + len(moves) + sum(place in left for place in at.values())
        return self.best is None or least < _moves(self.best)

    def _ways(
        self, host: str, left: Sequence[str], at: Mapping[str, str]
    ) -> Iterator[tuple[tuple[Move, ...], dict[str, str]]]:
        """Yield the ways to empty a host: its moves, and the host of each worker afterwards."""
        workers = sorted((name for name in at if at[name] == host), key=lambda name: -self.capacity.demand.get(name, 1))
        yield from self._placements(host, workers, left, dict(at), ())

    def _is_open(self, host: str, left: Sequence[str]) -> bool:
        """Return whether a host takes workers: after its change also one that is out of service now."""
        return host in self.capacity.targets or (host in self.hosts and host not in left)

    def _placements(
        self, host: str, workers: Sequence[str], left: Sequence[str], at: dict[str, str], moves: tuple[Move, ...]
    ) -> Iterator[tuple[tuple[Move, ...], dict[str, str]]]:
        if not workers:
            yield moves, at
            return
        worker, *others = workers
        hosts = (name for name in self.capacity.slots if name != host and self._is_open(name, left))
        targets = [name for name in hosts if self.capacity.has_room(name, worker, at)]
        if not targets:
            self.stuck.setdefault(len(left), {}).setdefault(host, worker)
        # A host that needs no further change first: there the worker can stay.
        for target in sorted(targets, key=lambda name: (name in left, _workers_on(name, at), name)):
            move = Move(worker, host, target)
            yield from self._placements(host, others, left, {**at, worker: target}, (*moves, move))


def plan_window(capacity: HostSlots, at: Mapping[str, str], hosts: Sequence[str]) -> list[EmptiedHost]:
    """Return the hosts in the order of their changes, each with the moves that empty it; raise ``Infeasible``."""
    search = _Search(capacity, frozenset(hosts), least=sum(place in set(hosts) for place in at.values()))
    search.run(sorted(set(hosts)), dict(at))
    if search.best is None:
        stuck = [f"{worker} on {host}" for host, worker in sorted(search.stuck[min(search.stuck)].items())]
        raise Infeasible(
            f"no order empties {listed(sorted(set(hosts)))}: no other host has room for {listed(stuck)}; free a slot, "
            "add a spare host, or leave a host out"
        )
    return search.best


def _workers_on(host: str, at: Mapping[str, str]) -> int:
    return sum(place == host for place in at.values())


def _moves(changes: Sequence[EmptiedHost]) -> int:
    return sum(len(change.moves) for change in changes)
