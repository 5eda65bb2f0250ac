# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Good plans for many workers of odd sizes or with odd rules: one after another, others making way where they must."""

from __future__ import annotations

from collections.abc import Iterable

from .problem import Problem, Step

_DEPTHS = (1, 2, 4, 8, 16, 32, 64)


def displacing(problem: Problem, begin: Iterable[Step] = ()) -> list[Step] | None:
    """A plan that need not be the shortest, after those first steps that can be made; None where none is found."""
    board = _Board(problem)
    for step in begin:
        if board.is_possible(step):
            board.move(step.worker, step.target)
    while board.waiting:
        made = len(board.steps)
        if not _move_one(board):
            return None
        if problem.return_home:
            for step in reversed(board.steps[made:]):
                board.move(step.worker, step.source)
    return board.steps


def _move_one(board: _Board) -> bool:
    """Move whoever can move at once, else the first for whom few others have to make way."""
    worker = board.next_direct()
    if worker is not None:
        return board.relocate(worker, 0, set())
    waiting = board.waiting_largest_first()
    return any(board.relocate(worker, depth, set()) for depth in _DEPTHS for worker in waiting)


class _Board:
    """Where everyone is by now, and how it came to be."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._free = problem.free_at_start()
        self._open = {host for host, free in enumerate(self._free) if free > 0}
        self._at = list(problem.start)
        self._moves = [0] * len(problem.start)
        self._wanted = [0] * len(problem.room)
        for targets in problem.targets:
            for host in targets:
                self._wanted[host] += 1
        self.waiting = set(problem.workers)
        self.steps: list[Step] = []

    def is_possible(self, step: Step) -> bool:
        """The worker is where the step begins, and has room where it ends."""
        return self._at[step.worker] == step.source and self._free[step.target] >= self._problem.need[step.worker]

    def move(self, worker: int, target: int) -> None:
        """Make one step."""
        source, need = self._at[worker], self._problem.need[worker]
        self.steps.append(Step(worker, source, target))
        self._at[worker] = target
        self._set_free(source, self._free[source] + need)
        self._set_free(target, self._free[target] - need)
        self._count_move(worker, 1)

    def next_direct(self) -> int | None:
        """Of the workers that wait and can move at once a large one, that leaves room where few others could go.

        Room that many can use will be used anyway: so hosts that are hard to fill are opened while they can be filled.
        """
        direct = [worker for worker in self.waiting if self._direct(worker, set())]
        need, wanted, at = self._problem.need, self._wanted, self._at
        return min(direct, key=lambda worker: (-need[worker], wanted[at[worker]] or len(need), worker), default=None)

    def waiting_largest_first(self) -> list[int]:
        """The workers that wait, those who need most first."""
        return sorted(self.waiting, key=lambda worker: (-self._problem.need[worker], worker))

    def relocate(self, worker: int, depth: int, busy: set[int]) -> bool:
        """Move a worker, having others make way up to a depth; ``busy`` hosts are being emptied or were tried."""
        direct = self._direct(worker, busy)
        if direct:
            self.move(worker, min(direct, key=lambda host: (self._free[host], self._wanted[host], host)))
            return True
        for host in self._by_ease(worker, busy) if depth else ():
            if host not in busy and self._make_way(host, worker, depth, busy):
                self.move(worker, host)
                return True
        return False

    def _direct(self, worker: int, busy: set[int]) -> list[int]:
        need, at = self._problem.need[worker], self._at[worker]
        return [
            host
            for host in self._open & self._problem.targets[worker]
            if self._free[host] >= need and host != at and host not in busy
        ]

    def _by_ease(self, worker: int, busy: set[int]) -> list[int]:
        hosts = self._problem.targets[worker] - busy - {self._at[worker]}
        return sorted(hosts, key=lambda host: (-self._free[host], host))

    def _make_way(self, host: int, newcomer: int, depth: int, busy: set[int]) -> bool:
        """Free a host for a newcomer, who stays where it is meanwhile; leaves all as it was if that fails."""
        busy.add(host)
        begin = len(self.steps)
        need = self._problem.need[newcomer]
        guests = [guest for guest in self._problem.workers if self._at[guest] == host]
        for guest in sorted(guests, key=lambda guest: (self._moves[guest], -self._problem.need[guest])):
            if self._free[host] >= need:
                break
            self.relocate(guest, depth - 1, busy)
        if self._free[host] >= need:
            return True
        self._take_back(begin)
        return False

    def _take_back(self, begin: int) -> None:
        for step in reversed(self.steps[begin:]):
            self.move(step.worker, step.source)
            self._count_move(step.worker, -2)
        del self.steps[begin:]

    def _set_free(self, host: int, free: int) -> None:
        self._free[host] = free
        (self._open.add if free > 0 else self._open.discard)(host)

    def _count_move(self, worker: int, count: int) -> None:
        self._moves[worker] += count
        is_waiting = self._moves[worker] == 0
        if is_waiting != (worker in self.waiting):
            (self.waiting.add if is_waiting else self.waiting.remove)(worker)
            for host in self._problem.targets[worker]:
                self._wanted[host] += 1 if is_waiting else -1
