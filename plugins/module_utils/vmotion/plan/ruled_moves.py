# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Sequential moves that keep the rules of the cluster and fit memory and CPU of each target; pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .fleet import Fleet, Together
from .placement import Infeasible, listed
from .plan import Move
from .window import plan_window
from .window_search import EFFORT, HASTE, State, Window, window_of


class _Node(NamedTuple):
    at: tuple[int, ...]
    moved: frozenset[int]
    moves: int = 0
    step: int | None = None
    before: _Node | None = None


def keep_rules(fleet: Fleet, plan: Sequence[Move], at: Mapping[str, str], return_home: bool) -> list[Move]:
    """Return the plan if each of its moves is allowed, otherwise another one for its workers; raise ``Infeasible``."""
    refused = next(refusals(fleet, plan, at), None)
    if refused is None:
        return list(plan)
    workers = list(dict.fromkeys(move.worker for move in plan))
    out = _by_hosts(fleet, at, workers) or _Search(fleet, at, workers).run(refused)
    # On the reversed way, each worker returns to room that no other one has taken since.
    home = [Move(move.worker, move.target, move.source) for move in reversed(out)] if return_home else []
    refused = next(refusals(fleet, [*out, *home], at), None)
    return [*out, *home] if refused is None else _Search(fleet, at, workers, return_home=True).run(refused)


def _by_hosts(fleet: Fleet, at: Mapping[str, str], workers: Sequence[str]) -> list[Move]:
    """Return moves of workers of several vGPU profiles that empty their hosts one after another; empty without them.

    For many workers, a search over single moves would be given up.
    """
    homes = sorted({at[worker] for worker in workers})
    has_others = any(at[name] in homes for name in at.keys() - set(workers))
    if has_others or not any(room.gpus for room in fleet.hosts.values()):
        return []
    try:
        return [move for change in plan_window(fleet, at, homes, fleet.hosts) for move in change.moves]
    except Infeasible:
        return []


def refusals(fleet: Fleet, plan: Sequence[Move], at: Mapping[str, str]) -> Iterator[str]:
    """Yield why a move of a plan is not allowed."""
    now = dict(at)
    for move in plan:
        reason = Together(fleet, now).refusal(move)
        if reason:
            yield f"{move.worker} -> {move.target}: {reason}"
        now[move.worker] = move.target


class _Search:
    """States with the fewest workers left first; none is tried twice."""

    def __init__(
        self, fleet: Fleet, at: Mapping[str, str], workers: Sequence[str], *, return_home: bool = False
    ) -> None:
        self._return_home = return_home
        self._window, start = window_of(fleet, at, (), fleet.hosts)
        self._start = _Node(start.at, frozenset())
        self._chosen = frozenset(self._window.workers.index(worker) for worker in workers)

    def run(self, refused: str) -> list[Move]:
        """Return the moves; raise ``Infeasible`` with the reason for which the first plan was refused."""
        opened = [(HASTE * self._left(self._start), 0, self._start)]
        closed = set()
        tried = 0
        while opened:
            _bound, _turn, node = heapq.heappop(opened)
            key = self._key(node)
            if key in closed:
                continue
            closed.add(key)
            if not self._left(node):
                return _moves(self._window, node)
            if tried * len(self._window.hosts) > EFFORT:
                raise self._infeasible(f"none was found within {tried} tries, although one may exist", refused)
            for following in self._following(node):
                tried += 1
                heapq.heappush(opened, (following.moves + HASTE * self._left(following), tried, following))
        raise self._infeasible("there is none", refused)

    def _left(self, node: _Node) -> int:
        """Return the least number of moves that are left."""
        left = len(self._chosen) - len(node.moved)
        if not self._return_home:
            return left
        return 2 * left + sum(here != home for here, home in zip(node.at, self._start.at))

    def _following(self, node: _Node) -> Iterator[_Node]:
        state = State(node.at, frozenset())
        for worker in sorted(self._chosen):
            for host in range(len(self._window.hosts)):
                if host != node.at[worker] and not self._window.obstacle(worker, host, state):
                    at = (*node.at[:worker], host, *node.at[worker + 1 :])
                    yield _Node(at, node.moved | {worker}, node.moves + 1, worker, node)

    def _key(self, node: _Node) -> tuple[object, ...]:
        """Return a key that is equal for states that differ only by exchanged workers or hosts of one kind."""
        guests: dict[int, list[tuple[int, bool, bool, int]]] = {}
        for worker, host in enumerate(node.at):
            home = self._start.at[worker] if self._return_home else -1
            kind = self._window.worker_kinds[worker], worker in node.moved, worker in self._chosen, home
            guests.setdefault(host, []).append(kind)
        kinds = enumerate(self._window.hosts if self._return_home else self._window.host_kinds)
        return tuple(sorted((kind, tuple(sorted(guests.get(host, ())))) for host, kind in kinds))

    def _infeasible(self, outcome: str, refused: str) -> Infeasible:
        names = [self._window.workers[worker] for worker in sorted(self._chosen)]
        return Infeasible(
            f"{listed(names)} cannot all move by an order that keeps the rules and the memory of the hosts: {outcome}; "
            f"the one by GPU slots fails at {refused}",
            names,
        )


def _moves(window: Window, end: _Node) -> list[Move]:
    moves: list[Move] = []
    node: _Node | None = end
    while node is not None and node.before is not None and node.step is not None:
        source, target = node.before.at[node.step], node.at[node.step]
        moves.append(Move(window.workers[node.step], window.hosts[source], window.hosts[target]))
        node = node.before
    return moves[::-1]
