"""The moves that a verdict judges: their groups, their windows, and which of them took place."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .judged_facts import Move
from .limits import number


@dataclass(frozen=True, eq=False)
class MoveGroup:
    """Moves that overlap in time, judged as one; its window is ``[started, ends]``."""

    moves: tuple[int, ...]
    ranks: frozenset[int]
    started: float
    completed: float
    ends: float

    @property
    def is_over(self) -> bool:
        """Return whether every move of the group has ended."""
        return math.isfinite(self.completed)


class Timeline:
    """The groups of moves, sorted by time."""

    def __init__(self, moves: Sequence[Move], resume_deadline_s: float) -> None:
        self.groups = _groups(moves, resume_deadline_s)
        self._starts = [group.started for group in self.groups]
        self._completions = [group.completed for group in self.groups]
        self._ends = [group.ends for group in self.groups]

    def touched(self, begin: float, end: float) -> list[MoveGroup]:
        """Return the groups whose window a silence between two times overlaps."""
        return self.groups[bisect_right(self._ends, begin) : bisect_left(self._starts, end)]

    def moving(self, begin: float, end: float) -> list[MoveGroup]:
        """Return the groups that were moving at some point between two times."""
        return self.groups[bisect_right(self._completions, begin) : bisect_left(self._starts, end)]

    def moves_again(self, after: float, begin: float, end: float) -> bool:
        """Return whether a group that started later than ``after`` was moving at some point between two times."""
        first = max(bisect_right(self._starts, after), bisect_right(self._completions, begin))
        return first < bisect_left(self._starts, end)

    def owner(self, begin: float, end: float) -> MoveGroup | None:
        """Return the group that explains a silence: the one whose move, or else whose window, overlaps it most."""
        touched = self.touched(begin, end)
        if len(touched) < 2:
            return touched[0] if touched else None
        return max(
            touched,
            key=lambda group: (
                max(0.0, min(end, group.completed) - max(begin, group.started)),
                min(end, group.ends) - max(begin, group.started),
            ),
        )

    def around(self) -> Iterator[tuple[float, MoveGroup, float]]:
        """Yield each group with the end of the previous one and the start of the next one."""
        for index, group in enumerate(self.groups):
            before = self.groups[index - 1].completed if index else -math.inf
            after = self.groups[index + 1].started if index + 1 < len(self.groups) else math.inf
            yield before, group, after


def move_name(moves: Sequence[Move], index: int) -> str:
    return f"move {index + 1} ({moves[index].get('worker', 'worker unknown')})"


def is_external(move: Move) -> bool:
    """Return whether another user started the move."""
    return bool(move.get("external"))


def external_text(move: Move) -> str:
    """Return the note on a move that another user started."""
    ended = "moved" if move.get("ok") else "began to move" if move.get("completed") is None else "failed to move"
    where = f"{move.get('worker')} from {move.get('source')} to {move.get('target')}"
    return f"moved by others: {move.get('by') or 'an unknown user'} {ended} {where}; this test did not start that"


def faults(moves: Sequence[Move]) -> Iterator[str]:
    """Yield a sentence for each move with too little data to judge it."""
    for index, move in enumerate(moves):
        started, completed = moment(move.get("started")), moment(move.get("completed"))
        if not isinstance(move.get("ok"), (bool, type(None))):
            yield f"moves: {move_name(moves, index)} has ok {move['ok']!r}, which is neither true nor false"
        if started is None:
            if move.get("ok") is True:
                yield f"moves: {move_name(moves, index)} succeeded, but its start time is unknown"
            continue
        if completed is None:
            yield f"moves: {move_name(moves, index)} has not ended"
        elif completed < started:
            yield f"moves: {move_name(moves, index)} ends {started - completed:.3f} s before it starts"


def moved(moves: Sequence[Move], evidence: Sequence[Mapping[str, object] | None]) -> list[bool]:
    """Return whether each move took place: it succeeded at known times, and no observation contradicts that."""
    return [_succeeded(move) and not _contradicted(seen or {}) for move, seen in zip(moves, evidence)]


def moment(value: object) -> float | None:
    """Return a time from a move; None if it is absent or invalid."""
    given = number(value)
    return given if given is not None and math.isfinite(given) else None


def ranks_of(move: Mapping[str, object]) -> frozenset[int]:
    """Return the ranks on the worker that moves, without invalid ones."""
    given = move.get("ranks")
    numbers = [moment(rank) for rank in given] if isinstance(given, (list, tuple, set, frozenset)) else []
    return frozenset(int(rank) for rank in numbers if rank is not None)


def _succeeded(move: Move) -> bool:
    known = None not in (moment(move.get("started")), moment(move.get("completed")))
    return move.get("ok") is True and known


def before_and_after(value: object) -> tuple[object, object]:
    """Return the observations before and after a move, None for a missing one."""
    if not isinstance(value, Mapping):
        return None, None
    return value.get("before"), value.get("after")


def _contradicted(evidence: Mapping[str, object]) -> bool:
    host_before, host_after = before_and_after(evidence.get("host"))
    stayed = None not in (host_before, host_after) and host_before == host_after
    return evidence.get("hot_migration") is False or stayed


def _groups(moves: Sequence[Move], resume_deadline_s: float) -> list[MoveGroup]:
    groups: list[MoveGroup] = []
    for started, completed, index in sorted(_spans(moves)):
        group = MoveGroup((index,), ranks_of(moves[index]), started, completed, completed + resume_deadline_s)
        if groups and started < groups[-1].completed:
            group = _joined(groups.pop(), group)
        groups.append(group)
    return groups


def _joined(first: MoveGroup, second: MoveGroup) -> MoveGroup:
    last = max(first, second, key=lambda group: group.completed)
    return MoveGroup(first.moves + second.moves, first.ranks | second.ranks, first.started, last.completed, last.ends)


def _spans(moves: Sequence[Move]) -> Iterator[tuple[float, float, int]]:
    """Yield the window of each move; moves that a test requested together share one window."""
    windows: dict[object, tuple[float, float]] = {}
    own: dict[int, object] = {}
    for index, move in enumerate(moves):
        started, completed = moment(move.get("started")), moment(move.get("completed"))
        if started is not None:
            ended = math.inf if completed is None else max(started, completed)
            own[index] = key = ("wave", number(move.get("wave"))) if number(move.get("wave")) is not None else index
            first, last = windows.get(key, (started, ended))
            windows[key] = min(first, started), max(last, ended)
    yield from ((*windows[key], index) for index, key in own.items())
