"""The plan of a maintenance window: the order of the hosts, and the moves that empty each of them; pure.

A worker that moves to a host whose change is done, or that needs none, does not move again. Each move keeps the rules
of the cluster, and fits GPU slots, memory and CPU of its target. The plan has the fewest moves, unless the search for a
shorter one was given up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...workers.placement.gpu_slots import gigabytes
from .fleet import RESOURCES, Fleet
from .placement import Infeasible, listed
from .plan import Move
from .problem import Step
from .search import Key, Node, Search, States, arrangement, numbered

MOST_REASONS = 8
# In a search for any plan, each worker that must move counts as this number of moves.
HASTE = 4
RULE, APART, ALONE = "a VM-host rule or the linked vGPUs", "an anti-affinity rule", "one worker per host"


class EmptiedHost(NamedTuple):
    """A host that leaves service, and the moves that empty it before."""

    host: str
    moves: tuple[Move, ...]


def plan_window(
    fleet: Fleet, at: Mapping[str, str], hosts: Sequence[str], open_hosts: Collection[str]
) -> list[EmptiedHost]:
    """Return the hosts in the order of their changes, each with the moves that empty it; raise ``Infeasible``.

    ``open_hosts`` are those in service; another one takes workers after its change. The targets of a worker in the
    fleet are the hosts that it may use once they are in service.
    """
    window = Window.of(fleet, at, hosts, open_hosts)
    start = Node(State(window.places(at), window.changed))
    states = WindowStates(window, empty_first=True)
    search = Search(states)
    found = search.run(start, HASTE)
    if found is None and not search.is_exhausted:
        states = WindowStates(window)
        search = Search(states)
        found = search.run(start, HASTE)
    if found is None:
        raise _infeasible(search, states, start.state.at)
    if found.moves > sum(place in hosts for place in at.values()):
        found = Search(WindowStates(window)).run(start, 1, found.moves) or found
    plan: list[EmptiedHost] = []
    for node in found.path():
        if isinstance(node.step, int):
            plan.append(EmptiedHost(window.hosts[node.step], ()))
        else:
            worker, source, target = node.step
            move = Move(window.workers[worker], window.hosts[source], window.hosts[target])
            plan[-1] = EmptiedHost(plan[-1].host, (*plan[-1].moves, move))
    return plan


def _infeasible(search: Search, states: WindowStates, at: Sequence[int]) -> Infeasible:
    """Return the error with the workers for which no host was found, each with its present host.

    The search tries only one of several workers that can be exchanged.
    """
    window = states.window
    names = listed(window.hosts[host] for host in sorted(window.changed))
    stuck = states.stuck[min(states.stuck)] if states.stuck else {}
    alike = {window.place_of(worker, at) for worker in stuck}
    named = [worker for worker in range(len(window.workers)) if window.place_of(worker, at) in alike]
    workers = listed(f"{window.workers[worker]} on {window.hosts[at[worker]]}" for worker in named)
    reasons = sorted(set().union(*stuck.values()))
    more = [f"{len(reasons) - MOST_REASONS} more"] if len(reasons) > MOST_REASONS else []
    missing = ", ".join([*reasons[:MOST_REASONS], *more]) or "no other host in service"
    reason = f"no other host has room for {workers} ({missing})"
    remedy = "free a slot, add a spare host, or leave a host out"
    if search.is_exhausted:
        return Infeasible(
            f"no order that empties {names} was found within {search.tried} tries, although one may exist: in the best "
            f"one, {reason}; {remedy}"
        )
    return Infeasible(f"no order empties {names}: {reason}; {remedy}")


class State(NamedTuple):
    """The host of each worker, the hosts that wait for their change, and the host that is being emptied, if any."""

    at: tuple[int, ...]
    waiting: frozenset[int]
    current: int | None = None


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
    groups: list[frozenset[int]] = field(init=False)
    worker_kinds: list[int] = field(init=False)
    host_kinds: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Find the groups that a rule keeps apart, and the kinds of workers and hosts that can be exchanged."""
        given = [self.fleet.workers[name] for name in self.workers]
        self.needs = [worker.needs for worker in given]
        self.sizes = [gigabytes(worker.profiles) for worker in given]
        self.groups = [
            frozenset(number for number, group in enumerate(self.fleet.apart) if name in group) for name in self.workers
        ]
        allowed = [frozenset(worker.targets) for worker in given]
        profiles = [worker.profiles for worker in given]
        self.worker_kinds = numbered(zip(self.needs, allowed, self.groups, profiles))
        targets = dict(zip(self.worker_kinds, allowed))
        rooms = [self.fleet.hosts[name] for name in self.hosts]
        users = [frozenset(kind for kind in targets if name in targets[kind]) for name in self.hosts]
        is_open = [host in self.open for host in range(len(rooms))]
        self.host_kinds = numbered((room.has, room.gpus, *more) for room, *more in zip(rooms, is_open, users))

    @classmethod
    def of(cls, fleet: Fleet, at: Mapping[str, str], hosts: Collection[str], open_hosts: Collection[str]) -> Window:
        """Return the problem of emptying hosts, while others are open."""
        names = sorted(fleet.hosts)
        changed, is_open = (
            frozenset(i for i, name in enumerate(names) if name in some) for some in (hosts, open_hosts)
        )
        return cls(fleet, sorted(at), names, changed, is_open)

    def places(self, at: Mapping[str, str]) -> tuple[int, ...]:
        """Return the number of the host of each worker."""
        number = {name: index for index, name in enumerate(self.hosts)}
        return tuple(number[at[worker]] for worker in self.workers)

    def obstacle(self, worker: int, host: int, at: Sequence[int]) -> str:
        """Return why a host that is in service cannot take a worker; empty if it can."""
        name = self.hosts[host]
        if name not in self.fleet.workers[self.workers[worker]].targets:
            return RULE
        there = [other for other, place in enumerate(at) if place == host]
        if self.fleet.one_per_host and there:
            return ALONE
        for index, has in enumerate(self.fleet.hosts[name].has):
            if self.needs[worker][index] + sum(self.needs[other][index] for other in there) > has:
                return RESOURCES[index]
        if not self.fleet.has_gpus(name, self.workers[worker], (self.workers[other] for other in there)):
            return f"GPUs for {', '.join(self.fleet.workers[self.workers[worker]].profiles)} on {name}"
        return APART if any(self.groups[worker] & self.groups[other] for other in there) else ""

    def takers(self, at: Sequence[int]) -> Callable[[int], list[int]]:
        """Return a function with the hosts that can take a worker while the workers are on these hosts."""
        hosts = range(len(self.hosts))
        return lambda worker: [host for host in hosts if not self.obstacle(worker, host, at)]

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

    def place_of(self, worker: int, at: Sequence[int]) -> Key:
        """Return a key that is equal for workers that can be exchanged."""
        host = at[worker]
        guests = sorted(kind for kind, place in zip(self.worker_kinds, at) if place == host)
        return self.worker_kinds[worker], self.host_kinds[host], host in self.changed, tuple(guests)


class WindowStates(States):
    """States of a window: among equal bounds, those nearest to the end are tried first."""

    def __init__(self, window: Window, *, empty_first: bool = False) -> None:
        # An empty host that goes first is lost as a stopover: a worker that moves there stays. This search has far
        # fewer states, and finds no plan in which a worker must leave such a host again.
        self.window, self.empty_first = window, empty_first
        self.hosts = len(window.hosts)
        # By the number of waiting hosts: the workers for which no host was found, with the reasons.
        self.stuck: dict[int, dict[int, set[str]]] = {}

    def rank(self, node: Node, haste: int, turn: int) -> tuple[int, ...]:
        """Return the rank of a node: each worker on a host that waits or is being emptied moves at least once more."""
        at, waiting, current = node.state
        left = sum(host in waiting or host == current for host in at)
        return node.moves + haste * left, left + len(waiting), turn

    def key(self, state: State) -> Key:
        window = self.window
        hosts = (
            (kind, host in state.waiting, host == state.current, host in window.changed)
            for host, kind in enumerate(window.host_kinds)
        )
        return arrangement(state.at, window.worker_kinds, hosts)

    def is_end(self, state: State) -> bool:
        return not state.waiting and state.current is None

    def following(self, node: Node) -> Iterator[Node]:
        at, waiting, current = node.state
        if current is None:
            counts = {host: at.count(host) for host in waiting}
            empty = [host for host, count in counts.items() if not count][:1] if self.empty_first else []
            for host in empty or sorted(waiting, key=lambda one: (counts[one], one)):
                yield Node(State(at, waiting - {host}, host if counts[host] else None), node.moves, host, node)
            return
        here = [worker for worker, host in enumerate(at) if host == current]
        for worker in self.window.next_of(here):
            yield from self._moves(node, worker, len(here) == 1)

    def _moves(self, node: Node, worker: int, is_last: bool) -> Iterator[Node]:
        at, waiting, current = node.state
        reasons = set()
        for host in self.window.targets(node.state):
            reason = self.window.obstacle(worker, host, at)
            reasons.add(reason)
            if not reason:
                state = State((*at[:worker], host, *at[worker + 1 :]), waiting, None if is_last else current)
                yield Node(state, node.moves + 1, Step(worker, current, host), node)
        if "" not in reasons:
            self.stuck.setdefault(len(waiting), {}).setdefault(worker, set()).update(reasons)
