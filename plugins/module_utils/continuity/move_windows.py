# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The moves that a verdict judges: which belong together, what their windows are, which of them really happened."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .limits import number


@dataclass(frozen=True, eq=False)
class Group:
    """Moves that overlap in time, judged as one; its window is ``[started, ends]``."""

    moves: tuple[int, ...]
    ranks: frozenset[int]
    started: float
    completed: float
    ends: float

    @property
    def is_over(self) -> bool:
        """Every move of the group has come to its end."""
        return math.isfinite(self.completed)


class Timeline:
    """The groups of moves in the order of time."""

    def __init__(self, moves: Sequence[Mapping[str, Any]], resume_deadline_s: float) -> None:
        self.groups = _groups(moves, resume_deadline_s)
        self._starts = [group.started for group in self.groups]
        self._completions = [group.completed for group in self.groups]
        self._ends = [group.ends for group in self.groups]

    def touched(self, begin: float, end: float) -> list[Group]:
        """The groups whose window a silence between two moments overlaps."""
        return self.groups[bisect_right(self._ends, begin) : bisect_left(self._starts, end)]

    def moving(self, begin: float, end: float) -> list[Group]:
        """The groups that were on their way at some moment between two others."""
        return self.groups[bisect_right(self._completions, begin) : bisect_left(self._starts, end)]

    def owner(self, begin: float, end: float) -> Group | None:
        """The group that a silence is put down to: the one it overlaps most, the move itself before its aftermath."""
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

    def around(self) -> Iterator[tuple[float, Group, float]]:
        """Each group with the end of the one before and the start of the one after."""
        for index, group in enumerate(self.groups):
            before = self.groups[index - 1].completed if index else -math.inf
            after = self.groups[index + 1].started if index + 1 < len(self.groups) else math.inf
            yield before, group, after


def move_name(moves: Sequence[Mapping[str, Any]], index: int) -> str:
    """How messages call a move."""
    return f"move {index + 1} ({moves[index].get('worker', 'worker unknown')})"


def is_external(move: Mapping[str, Any]) -> bool:
    """Whether somebody else began the move."""
    return bool(move.get("external"))


def external_text(move: Mapping[str, Any]) -> str:
    """What a reader is told of such a move."""
    ended = "moved" if move.get("ok") else "began to move" if move.get("completed") is None else "failed to move"
    where = f"{move.get('worker')} from {move.get('source')} to {move.get('target')}"
    return f"moved by others: {move.get('by') or 'somebody'} {ended} {where}; this test did not begin that"


def faults(moves: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The moves that cannot be judged by what is known of them, a sentence each."""
    for index, move in enumerate(moves):
        started, completed = moment(move.get("started")), moment(move.get("completed"))
        if not isinstance(move.get("ok"), (bool, type(None))):
            yield f"moves: {move_name(moves, index)} has ok {move['ok']!r}, which is neither true nor false"
        if started is None:
            if move.get("ok") is True:
                yield f"moves: {move_name(moves, index)} is said to have ended well, and when it began is not known"
            continue
        if completed is None:
            yield f"moves: {move_name(moves, index)} has not come to its end"
        elif completed < started:
            yield f"moves: {move_name(moves, index)} is said to end {started - completed:.3f} s before it starts"


def moved(moves: Sequence[Mapping[str, Any]], evidence: Sequence[Mapping[str, Any] | None]) -> list[bool]:
    """By move whether it took place: its task succeeded, at known times, and no evidence contradicts that."""
    return [_succeeded(move) and not _contradicted(seen or {}) for move, seen in zip(moves, evidence)]


def moment(value: object) -> float | None:
    """A moment that a move gives; None where it gives none, or one that is no moment."""
    given = number(value)
    return given if given is not None and math.isfinite(given) else None


def ranks_of(move: Mapping[str, Any]) -> frozenset[int]:
    """The ranks on the worker that moves, as far as they are numbers."""
    given = move.get("ranks")
    numbers = [moment(rank) for rank in given] if isinstance(given, (list, tuple, set, frozenset)) else []
    return frozenset(int(rank) for rank in numbers if rank is not None)


def _succeeded(move: Mapping[str, Any]) -> bool:
    known = None not in (moment(move.get("started")), moment(move.get("completed")))
    return move.get("ok") is True and known


def before_and_after(value: object) -> tuple[Any, Any]:
    """The two halves of an observation made before and after, None for one that was not made."""
    if not isinstance(value, Mapping):
        return None, None
    return value.get("before"), value.get("after")


def _contradicted(evidence: Mapping[str, Any]) -> bool:
    host_before, host_after = before_and_after(evidence.get("host"))
    stayed = None not in (host_before, host_after) and host_before == host_after
    return evidence.get("hot_migration") is False or stayed


def _groups(moves: Sequence[Mapping[str, Any]], resume_deadline_s: float) -> list[Group]:
    groups: list[Group] = []
    for started, completed, index in sorted(_spans(moves)):
        group = Group((index,), ranks_of(moves[index]), started, completed, completed + resume_deadline_s)
        if groups and started < groups[-1].completed:
            group = _joined(groups.pop(), group)
        groups.append(group)
    return groups


def _joined(first: Group, second: Group) -> Group:
    last = max(first, second, key=lambda group: group.completed)
    return Group(first.moves + second.moves, first.ranks | second.ranks, first.started, last.completed, last.ends)


def _spans(moves: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, float, int]]:
    for index, move in enumerate(moves):
        started, completed = moment(move.get("started")), moment(move.get("completed"))
        if started is not None:
            yield started, math.inf if completed is None else max(started, completed), index
