"""The search behind all plans: A* over states, none of which is tried twice; pure."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Tuple

from .problem import Step

# The moves that a search tries, times the hosts: some seconds on one core.
EFFORT = 1_500_000
Key = Tuple[Any, ...]


class Node(NamedTuple):
    """A state with the number of moves up to it, and the step that led to it from another node."""

    state: Any
    moves: int = 0
    step: Any = None
    before: Node | None = None

    def path(self) -> list[Node]:
        """Return the nodes from the second one up to this one."""
        nodes = [self]
        while nodes[-1].before is not None:
            nodes.append(nodes[-1].before)
        return nodes[-2::-1]


class States(ABC):
    """The states of a plan, and the steps between them; ``hosts`` is their number."""

    hosts: int

    @abstractmethod
    def rank(self, node: Node, haste: int, turn: int) -> tuple[int, ...]:
        """Return the rank of a node, the lowest first: its moves, and ``haste`` times the least number that is left."""

    @abstractmethod
    def key(self, state: Any) -> Key:
        """Return a key that is equal for states that differ only by exchanged workers or hosts of one kind."""

    @abstractmethod
    def is_end(self, state: Any) -> bool:
        """Return whether the plan ends with a state."""

    @abstractmethod
    def following(self, node: Node) -> Iterator[Node]:
        """Yield the nodes one step further."""


class Search:
    """One or several runs over the same states."""

    def __init__(self, states: States) -> None:
        self.states = states
        self.tried = 0
        self.is_exhausted = False

    def run(self, start: Node, haste: int, limit: float = math.inf) -> Node | None:
        """Return the end of a plan below the limit, with haste 1 a shortest one; None if none was found."""
        opened = [(self.states.rank(start, haste, 0), start)]
        closed: set[Key] = set()
        while opened and opened[0][0][0] < limit:
            _rank, node = heapq.heappop(opened)
            key = self.states.key(node.state)
            if key in closed:
                continue
            closed.add(key)
            if self.states.is_end(node.state):
                return node
            if self.tried * self.states.hosts > EFFORT:
                self.is_exhausted = True
                return None
            for following in self.states.following(node):
                self.tried += 1
                heapq.heappush(opened, (self.states.rank(following, haste, self.tried), following))
        return None


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """Return a number for each key, the same one for equal keys."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def arrangement(at: Sequence[int], workers: Sequence[Hashable], hosts: Iterable[Hashable]) -> Key:
    """Return the kind of each host with the kinds of its workers, without the order of either."""
    guests: dict[int, list[Any]] = {}
    for worker, host in enumerate(at):
        guests.setdefault(host, []).append(workers[worker])
    return tuple(sorted((kind, tuple(sorted(guests.get(host, ())))) for host, kind in enumerate(hosts)))


class SingleMoves(States):
    """Workers that move one after another, each of the movers at least once; all others stay.

    ``targets`` returns for the hosts of all workers which hosts now take a worker. With ``return_home``, all end where
    they began. Among nodes of one bound, the newest is tried first, or the oldest.
    """

    def __init__(
        self,
        start: Sequence[int],
        movers: Iterable[int],
        kinds: tuple[Sequence[Hashable], Sequence[Hashable]],
        targets: Callable[[Sequence[int]], Callable[[int], Iterable[int]]],
        *,
        return_home: bool,
        oldest_first: bool = False,
    ) -> None:
        self.start = Node((tuple(start), 0))
        self.movers, self.targets, self.return_home = list(movers), targets, return_home
        workers, hosts = kinds
        self.hosts = len(hosts)
        homes = start if return_home else [-1] * len(start)
        self.worker_kinds = numbered(
            (kind, worker in self.movers, home) for worker, (kind, home) in enumerate(zip(workers, homes))
        )
        self.host_kinds = numbered((kind, host if host in homes else -1) for host, kind in enumerate(hosts))
        self._oldest_first, self._moved_ever = oldest_first, 0

    def rank(self, node: Node, haste: int, turn: int) -> tuple[int, ...]:
        at, moved = node.state
        left = len(self.movers) - bin(moved).count("1")
        if self.return_home:
            left = 2 * left + sum(here != home for here, home in zip(at, self.start.state[0]))
        return node.moves + haste * left, turn if self._oldest_first else -turn

    def key(self, state: Any) -> Key:
        at, moved = state
        workers = [(kind, moved >> worker & 1) for worker, kind in enumerate(self.worker_kinds)]
        return arrangement(at, workers, self.host_kinds)

    def is_end(self, state: Any) -> bool:
        at, moved = state
        return bin(moved).count("1") == len(self.movers) and (not self.return_home or at == self.start.state[0])

    def following(self, node: Node) -> Iterator[Node]:
        at, moved = node.state
        self._moved_ever |= moved
        targets, visited = self.targets(at), set()
        for worker in self.movers:
            source = at[worker]
            kind = self.worker_kinds[worker], source, moved >> worker & 1
            if kind in visited:
                continue
            visited.add(kind)
            for target in targets(worker):
                if target != source:
                    state = (*at[:worker], target, *at[worker + 1 :]), moved | 1 << worker
                    yield Node(state, node.moves + 1, Step(worker, source, target), node)

    def never_moved(self) -> list[int]:
        """Return the movers that never moved, nor any worker of their kind on a host of the same kind."""
        homes = [self.host_kinds[home] for home in self.start.state[0]]
        kinds = list(zip(self.worker_kinds, homes))
        moved = {kinds[worker] for worker in self.movers if self._moved_ever >> worker & 1}
        return [worker for worker in self.movers if kinds[worker] not in moved]
