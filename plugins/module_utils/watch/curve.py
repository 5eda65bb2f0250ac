"""Rate and loss of a job over its steps, in constant memory; rates exclude the warm-up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from ..continuity.limits import LOSS
from .received_record import ReceivedRecord

MOST_POINTS = 128


@dataclass
class _Sum:
    """Sums over the records of some steps; ``slowness`` is the sum of 1/rate, whose mean gives the mean rate."""

    rates: int = 0
    slowness: float = 0.0
    losses: int = 0
    loss: float = 0.0
    seen: float = 0.0

    def take(self, record: ReceivedRecord) -> None:
        if record.images_per_sec is not None:
            self.rates += 1
            self.slowness += 1 / record.images_per_sec
        if record.loss is not None and math.isfinite(record.loss):
            self.losses += 1
            self.loss += record.loss
        self.seen = max(self.seen, record.seen)

    def add(self, other: _Sum) -> None:
        self.rates, self.slowness = self.rates + other.rates, self.slowness + other.slowness
        self.losses, self.loss = self.losses + other.losses, self.loss + other.loss
        self.seen = max(self.seen, other.seen)

    @property
    def rate(self) -> float | None:
        """Return the images per second of one rank."""
        return self.rates / self.slowness if self.rates else None


class Point(TypedDict):
    """A stretch of steps: its last step, the time of that step, the rate of all ranks and the mean loss."""

    step: int
    seconds: float
    images_per_sec: float | None
    loss: float | None


class Curve:
    """The curve of a job; ``feed`` accepts the records of all ranks, and merges points if there are too many."""

    def __init__(self, warmup: int = 0) -> None:
        self._warmup, self._width = warmup, 1
        self._points: dict[int, _Sum] = {}
        self._ranks: dict[int, tuple[_Sum, _Sum]] = {}
        self._first: float | None = None
        self._last_step = 0

    def feed(self, record: ReceivedRecord) -> None:
        """Add one record; the marks of phases do not count as steps."""
        if self._first is None:
            self._first = record.seen
        if record.mark == LOSS:
            self._points.setdefault(record.step // self._width, _Sum()).take(record)
        if record.mark is not None:
            return
        warm, whole = self._ranks.setdefault(record.rank, (_Sum(), _Sum()))
        whole.take(record)
        if record.step > self._warmup:
            warm.take(record)
        self._points.setdefault(record.step // self._width, _Sum()).take(record)
        self._last_step = max(self._last_step, record.step)
        while len(self._points) > MOST_POINTS:
            self._halve()

    @property
    def began(self) -> float:
        """Return the arrival of the first record; 0 without one."""
        return self._first or 0.0

    def rate(self) -> float | None:
        """Return the images per second of all ranks, without the warm-up steps unless there are no others."""
        rates = [warm.rate or whole.rate for warm, whole in self._ranks.values()]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if known else None

    def points(self) -> list[Point]:
        """Return the points.

        Warm-up steps have no rate, unless there are no others: they include the compilation.
        """
        curve: list[Point] = []
        has_warm = any(self._is_warm(place) for place in self._points)
        for place, point in sorted(self._points.items()):
            rate = point.rate if self._is_warm(place) or not has_warm else None
            curve.append(
                {
                    "step": min((place + 1) * self._width - 1, self._last_step),
                    "seconds": round(point.seen - self.began, 3),
                    "images_per_sec": None if rate is None else rate * len(self._ranks),
                    "loss": point.loss / point.losses if point.losses else None,
                }
            )
        return curve

    def _is_warm(self, place: int) -> bool:
        """Return whether a point contains no warm-up step."""
        return max(1, place * self._width) > self._warmup

    def _halve(self) -> None:
        self._width *= 2
        halved: dict[int, _Sum] = {}
        for place, point in self._points.items():
            halved.setdefault(place // 2, _Sum()).add(point)
        self._points = halved
