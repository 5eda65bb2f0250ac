# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Silences joined across ranks: at every moment of such a silence, a rank that did not move was silent.

A moving rank is not measured. If a rank starts to move while it is silent, the silence continues on each rank that is
silent at this time and does not move. Only the silences around the start of a move are kept: a few for each rank and
each move.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .limits import TRAIN
from .move_windows import MoveGroup, Timeline


class SilencePart(NamedTuple):
    """The part of a rank's silence between its moves, and the group with which the rank started to move at its end."""

    begin: float
    end: float
    moves_with: MoveGroup | None = None

    @property
    def seconds(self) -> float:
        """Return the length in seconds; negative if the rank wrote while it moved."""
        return self.end - self.begin


class Allowed(NamedTuple):
    """A phase other than training, and how long it may last."""

    phase: str
    limit: float


class Joined(NamedTuple):
    """A silence of several ranks; ``allowed`` is the phase with the longest limit, None if all only trained."""

    rank: int
    step: int
    begin: float
    end: float
    allowed: Allowed | None


class _Piece:
    """A part of a silence, with the earliest start of a joined silence that ends with this part.

    ``trained`` is that start if all parts are between two training steps, ``other`` if they may be any parts.
    """

    __slots__ = ("allowed", "is_continued", "other", "part", "rank", "step", "trained")

    def __init__(self, rank: int, step: int, part: SilencePart, allowed: Allowed | None) -> None:
        self.rank, self.step, self.part, self.allowed = rank, step, part, allowed
        self.is_continued = False
        self.trained = part.begin if allowed is None else math.inf
        self.other = None if allowed is None else (part.begin, allowed)


class JoinedSilences:
    """The silences of all ranks around the starts of moves; ``max_gap_s`` is the limit of a training step."""

    def __init__(self, timeline: Timeline, max_gap_s: float) -> None:
        self._timeline, self._training = timeline, Allowed(TRAIN, max_gap_s)
        self._pieces: list[_Piece] = []
        self._stopped: dict[MoveGroup, list[_Piece]] = {}
        self._around: dict[MoveGroup, list[_Piece]] = {}

    def add(self, rank: int, step: int, parts: Sequence[SilencePart], allowed: Allowed | None) -> None:
        """Add the parts of a rank's silence, which ended before a step."""
        for index, part in enumerate(parts):
            # At the start of a part, its rank wrote a line or, in a later part, ended its move.
            around = [
                group
                for group in self._timeline.moving(part.begin, part.end)
                if group.started > part.begin or (group.started == part.begin and index)
            ]
            if part.seconds < 0 or not (around or part.moves_with):
                continue
            piece = _Piece(rank, step, part, allowed)
            self._pieces.append(piece)
            for group in around:
                self._around.setdefault(group, []).append(piece)
            if part.moves_with:
                self._stopped.setdefault(part.moves_with, []).append(piece)

    def joined(self) -> Iterator[Joined]:
        """Yield the longest silences of several ranks."""
        for group in self._timeline.groups:
            self._continue(self._stopped.get(group, []), self._around.get(group, []))
        for piece in self._pieces:
            begin, end = piece.part[:2]
            if piece.is_continued:
                continue
            if piece.trained < begin:
                yield Joined(piece.rank, piece.step, piece.trained, end, None)
            if piece.other is not None and piece.other[0] < min(begin, piece.trained):
                yield Joined(piece.rank, piece.step, piece.other[0], end, piece.other[1])

    def _continue(self, stopped: Sequence[_Piece], around: Sequence[_Piece]) -> None:
        """Continue the silences of ranks that start to move on the ranks that are silent around that time."""
        if not stopped or not around:
            return
        trained = min(piece.trained for piece in stopped)
        other = min((piece.other for piece in stopped if piece.other is not None), default=None)
        for piece in stopped:
            piece.is_continued = True
        for piece in around:
            own = piece.allowed
            given = [] if own is None or trained == math.inf else [(trained, self._longer(own, self._training))]
            if own is None:
                piece.trained = min(piece.trained, trained)
            if other is not None:
                given.append((other[0], self._longer(other[1], own or self._training)))
            piece.other = min([*given, *([] if piece.other is None else [piece.other])], default=None)

    @staticmethod
    def _longer(one: Allowed, other: Allowed) -> Allowed:
        return max(one, other, key=lambda allowed: allowed.limit)
