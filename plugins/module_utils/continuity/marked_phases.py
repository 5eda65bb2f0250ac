"""Marked phases, in which one rank evaluated or saved and the others waited, and the stretches of steps between."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .limits import Limits
from .lines import Lines
from .step_records import Track

STRETCH_S, STRETCH_STEPS = 5.0, 5


class Marked(NamedTuple):
    """A stretch of time in which a rank was in a marked phase, no longer than the limit of that phase."""

    begin: float
    end: float
    phase: str


class MarkedPhases:
    """The marked phases of all ranks, sorted by time and without overlaps."""

    def __init__(self, tracks: Sequence[Track], limits: Limits) -> None:
        self._phases = list(_joined(sorted(one for track in tracks for one in _marked(track, limits))))
        self._begins = [one.begin for one in self._phases]
        self._ends = [one.end for one in self._phases]

    def within(self, begin: float, end: float) -> tuple[float, str]:
        """Return how many seconds between two times are in marked phases, and the phase with most of them."""
        if not self._phases:
            return 0.0, ""
        seconds: dict[str, float] = {}
        for one in self._phases[bisect_right(self._ends, begin) : bisect_left(self._begins, end)]:
            shared = min(end, one.end) - max(begin, one.begin)
            seconds[one.phase] = seconds.get(one.phase, 0.0) + shared
        return sum(seconds.values()), max(seconds, key=lambda phase: seconds[phase], default="")

    def of(self, phase: str) -> list[Marked]:
        return [one for one in self._phases if one.phase == phase]


def _marked(track: Track, limits: Limits) -> Iterator[Marked]:
    """Yield each phase from its start to its end or, without an end, for as long as the phase may last."""
    opened: dict[str, float] = {}
    if all(kind.mark is None for kind in track.kinds):
        return
    for line in track.lines:
        if line.mark == "begin":
            opened.setdefault(line.phase, line.at)
        elif line.mark == "end" and line.phase in opened:
            begin = opened.pop(line.phase)
            yield Marked(begin, min(line.at, begin + limits.gap(line.phase)), line.phase)
    for phase, begin in opened.items():
        yield Marked(begin, begin + limits.gap(phase), phase)


def _joined(phases: Sequence[Marked]) -> Iterator[Marked]:
    """Yield the stretches without overlaps; the earlier of two phases keeps the shared time."""
    until = -math.inf
    for one in phases:
        if one.end > until:
            yield one._replace(begin=max(one.begin, until))
            until = one.end


class Stretch(NamedTuple):
    """Consecutive steps with only training between them."""

    begin: float
    end: float
    rate: float


def stretches(steps: Lines, marked: MarkedPhases) -> Iterator[Stretch]:
    """Yield the stretches of a rank, one after the other.

    A stretch begins and ends with all steps of a moment; the steps of its first moment were made before it.
    """
    first: float | None = None
    made = 0
    for moment in _moments(steps):
        if not moment.is_train or first is None:
            first, made = moment.at if moment.is_last_train else None, 0
            continue
        made += moment.made
        if moment.at - first >= STRETCH_S and made >= STRETCH_STEPS:
            paused, _phase = marked.within(first, moment.at)
            if not paused:
                yield Stretch(first, moment.at, made / (moment.at - first))
            first, made = moment.at, 0


class _Moment(NamedTuple):
    """The steps that arrived at one moment: their number, and whether all of them, or the last one, are training."""

    at: float
    made: int
    is_train: bool
    is_last_train: bool


def _moments(steps: Lines) -> Iterator[_Moment]:
    """Yield the moments at which steps arrived, in order."""
    now: _Moment | None = None
    shared = [(kind.stride, kind.is_train) for kind in steps.kinds]
    for at, kind in zip(steps.at, steps.kind):
        stride, is_train = shared[kind]
        if now is not None and now.at == at:
            now = _Moment(at, now.made + stride, now.is_train and is_train, is_train)
            continue
        if now is not None:
            yield now
        now = _Moment(at, stride, is_train, is_train)
    if now is not None:
        yield now
