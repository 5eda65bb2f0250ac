# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The search for the order in which hosts are emptied: A* over states, none of which is tried twice; pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Tuple

from ...workers.placement.gpu_slots import gigabytes
from .fleet import RESOURCES, Fleet

# The moves that a search tries, times the hosts: some seconds on one core.
EFFORT = 1_500_000
# In a search for any plan, each worker on a waiting host counts as this number of moves.
HASTE = 4
RULE, APART, ALONE = "a VM-host rule or the linked vGPUs", "an anti-affinity rule", "one worker per host"
_Key = Tuple[object, ...]


class State(NamedTuple):
    """The host of each worker, the hosts that wait for their change, and the host that is being emptied, if any."""

    at: tuple[int, ...]
    waiting: frozenset[int]
    current: int | None = None


class SearchNode(NamedTuple):
    """A state with the number of moves up to it; ``step`` is the worker that moved, or None if a host came next."""

    state: State
    moves: int
    step: int | None = None
    before: SearchNode | None = None


@dataclass
class Window:
    """The problem in numbers; ``open`` are the hosts that take workers before any change."""

    fleet: Fleet
    workers: Sequence[str]
    hosts: Sequence[str]
    changed: frozenset[int]
    open: frozenset[int]
    needs: list[tuple[int, int, int]] = field(init=False)
    sizes: list[int] = field(init=False)
    apart: list[frozenset[int]] = field(init=False)
    groups: list[frozenset[int]] = field(init=False)
    worker_kinds: list[int] = field(init=False)
    host_kinds: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Find the groups that a rule keeps apart, and the kinds of workers and hosts that can be exchanged."""
        given = [self.fleet.workers[name] for name in self.workers]
        self.needs = [worker.needs for worker in given]
        self.sizes = [gigabytes(worker.profiles) for worker in given]
        self.apart = [frozenset(self.workers.index(name) for name in group) for group in self.fleet.apart]
        self.groups = [
            frozenset(number for number, group in enumerate(self.apart) if worker in group)
            for worker in range(len(given))
        ]
        allowed = [frozenset(worker.targets) for worker in given]
        kinds: dict[object, int] = {}
        profiles = [worker.profiles for worker in given]
        self.worker_kinds = [
            kinds.setdefault(key, len(kinds)) for key in zip(self.needs, allowed, map(frozenset, self.groups), profiles)
        ]
        self.host_kinds = [
            kinds.setdefault(
                (
                    self.fleet.hosts[name].has,
                    self.fleet.hosts[name].gpus,
                    number in self.open,
                    frozenset(kind for kind, targets in zip(self.worker_kinds, allowed) if name in targets),
                ),
                len(kinds),
            )
            for number, name in enumerate(self.hosts)
        ]

    def obstacle(self, worker: int, host: int, state: State) -> str:
        """Return why a host that is in service cannot take a worker; empty if it can."""
        name = self.hosts[host]
        if name not in self.fleet.workers[self.workers[worker]].targets:
            return RULE
        there = [other for other, place in enumerate(state.at) if place == host]
        if self.fleet.one_per_host and there:
            return ALONE
        for index, has in enumerate(self.fleet.hosts[name].has):
            if self.needs[worker][index] + sum(self.needs[other][index] for other in there) > has:
                return RESOURCES[index]
        if not self.fleet.has_gpus(name, self.workers[worker], (self.workers[other] for other in there)):
            return f"GPUs for {', '.join(self.fleet.workers[self.workers[worker]].profiles)} on {name}"
        return APART if any(self.groups[worker] & self.groups[other] for other in there) else ""

    def next_of(self, here: Sequence[int]) -> list[int]:
        """Return the workers that may move next: the largest, or of several vGPU profiles each kind, largest first."""
        ranked = sorted(here, key=lambda worker: (self.sizes[worker], self.needs[worker], -worker), reverse=True)
        if not any(self.sizes):
            return ranked[:1]
        kinds = dict.fromkeys(self.worker_kinds[worker] for worker in ranked)
        return [next(worker for worker in ranked if self.worker_kinds[worker] == kind) for kind in kinds]

    def targets(self, state: State) -> Iterator[int]:
        """Yield the hosts in service; one that needs no further change first, because a worker can stay there."""
        serving = [
            host
            for host in range(len(self.hosts))
            if host != state.current and (host in self.open or (host in self.changed and host not in state.waiting))
        ]
        yield from sorted(serving, key=lambda host: (host in state.waiting, -state.at.count(host), host))

    def key(self, state: State) -> _Key:
        """Return a key that is equal for states that differ only by exchanged workers or hosts of one kind."""
        guests = self._guests(state)
        places: list[_Key] = [
            (
                kind,
                host in state.waiting,
                host == state.current,
                host in self.changed,
                tuple(sorted(guests.get(host, ()))),
            )
            for host, kind in enumerate(self.host_kinds)
        ]
        return tuple(sorted(places))

    def place_of(self, worker: int, state: State) -> _Key:
        """Return a key that is equal for workers that can be exchanged in a state."""
        host = state.at[worker]
        guests = tuple(sorted(self._guests(state)[host]))
        return self.worker_kinds[worker], self.host_kinds[host], host in self.changed, guests

    def _guests(self, state: State) -> dict[int, list[int]]:
        """Return the kinds of the workers on each host."""
        guests: dict[int, list[int]] = {}
        for worker, host in enumerate(state.at):
            guests.setdefault(host, []).append(self.worker_kinds[worker])
        return guests


class WindowSearch:
    """States in the order of the shortest plan that they still allow, those nearest to the end first among equals."""

    def __init__(self, window: Window, *, empty_first: bool = False) -> None:
        # An empty host that goes first is lost as a stopover: a worker that moves there stays. This search has far
        # fewer states, and finds no plan in which a worker must leave such a host again.
        self.window, self.empty_first = window, empty_first
        self.tried = 0
        self.is_exhausted = False
        # By the number of waiting hosts: the workers for which no host was found, with the reasons.
        self.stuck: dict[int, dict[int, set[str]]] = {}

    def run(self, start: State, haste: int, limit: int | None = None) -> SearchNode | None:
        """Return a plan with fewer moves than the limit, with haste 1 a shortest one; None if none was found."""
        opened: list[tuple[int, int, int, SearchNode]] = []
        self._push(opened, SearchNode(start, 0), haste)
        closed = set()
        while opened:
            bound, _left, _turn, node = heapq.heappop(opened)
            if limit is not None and bound >= limit:
                return None
            key = self.window.key(node.state)
            if key in closed:
                continue
            closed.add(key)
            if not node.state.waiting and node.state.current is None:
                return node
            if self.tried * len(self.window.hosts) > EFFORT:
                self.is_exhausted = True
                return None
            for following in self._following(node):
                self._push(opened, following, haste)
        return None

    def _push(self, opened: list[tuple[int, int, int, SearchNode]], node: SearchNode, haste: int) -> None:
        """Add a node: each worker on a host that waits or is being emptied moves at least once more."""
        state = node.state
        left = sum(host in state.waiting or host == state.current for host in state.at)
        self.tried += 1
        heapq.heappush(opened, (node.moves + haste * left, left + len(state.waiting), self.tried, node))

    def _following(self, node: SearchNode) -> Iterator[SearchNode]:
        state = node.state
        if state.current is None:
            counts = {host: state.at.count(host) for host in state.waiting}
            empty = [host for host, count in counts.items() if not count][:1] if self.empty_first else []
            for host in empty or sorted(state.waiting, key=lambda one: (counts[one], one)):
                waiting = state.waiting - {host}
                yield SearchNode(State(state.at, waiting, host if counts[host] else None), node.moves, None, node)
            return
        here = [worker for worker, host in enumerate(state.at) if host == state.current]
        for worker in self.window.next_of(here):
            yield from self._moves(node, worker, len(here) == 1)

    def _moves(self, node: SearchNode, worker: int, is_last: bool) -> Iterator[SearchNode]:
        state, reasons = node.state, set()
        for host in self.window.targets(state):
            reason = self.window.obstacle(worker, host, state)
            if reason:
                reasons.add(reason)
                continue
            at = (*state.at[:worker], host, *state.at[worker + 1 :])
            following = State(at, state.waiting, None if is_last else state.current)
            yield SearchNode(following, node.moves + 1, worker, node)
            reasons.add("")
        if "" not in reasons:
            self.stuck.setdefault(len(state.waiting), {}).setdefault(worker, set()).update(reasons)


def steps_of(end: SearchNode) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the hosts in the order of their changes, each with its moves: workers and targets."""
    nodes: list[SearchNode] = []
    here: SearchNode | None = end
    while here is not None:
        nodes.append(here)
        here = here.before
    steps: list[tuple[int, list[tuple[int, int]]]] = []
    for before, node in zip(nodes[::-1], nodes[-2::-1]):
        if node.step is None:
            (host,) = before.state.waiting - node.state.waiting
            steps.append((host, []))
        else:
            steps[-1][1].append((node.step, node.state.at[node.step]))
    return steps


def window_of(
    fleet: Fleet, at: Mapping[str, str], hosts: Collection[str], open_hosts: Collection[str]
) -> tuple[Window, State]:
    """Return the problem in numbers and its first state."""
    names = sorted(fleet.hosts)
    number = {name: index for index, name in enumerate(names)}
    workers = sorted(at)
    changed = frozenset(number[name] for name in hosts)
    window = Window(fleet, workers, names, changed, frozenset(number[name] for name in open_hosts if name in number))
    return window, State(tuple(number[at[worker]] for worker in workers), changed)
