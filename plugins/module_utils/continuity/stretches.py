"""Stretches: the rate of a rank on the observer's clock, over enough steps that bursts of records do not matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .lines import Lines
from .marked_phases import MarkedPhases

STRETCH_S, STRETCH_STEPS = 5.0, 5


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
