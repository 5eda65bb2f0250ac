# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Pace: how many steps a rank made, and how fast, before, during and after a move."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import inf, isfinite, sqrt
from statistics import median
from typing import NamedTuple

from .limits import Breach, number
from .lines import Track
from .moves import Group, Timeline
from .progress import ENOUGH_STEPS

ENOUGH_RATES = 10
# So many standard errors make a fall certain.
CERTAIN = 5


class Pace:
    """The steps of one rank after its warm-up, by time."""

    def __init__(self, track: Track, first_step: int) -> None:
        steps = sorted((line for line in track.steps if line.step >= first_step), key=lambda line: line.at)
        self.rank = track.rank
        self._at = [line.at for line in steps]
        self._made = [0, *accumulate(line.stride for line in steps)]
        self._rates = [number(line.raw.get("images_per_sec")) if line.is_train else None for line in steps]

    def steps(self, after: float, before: float) -> int:
        """How many optimizer steps ended strictly between two moments."""
        begin, end = self._between(after, before)
        return self._made[end] - self._made[begin]

    def rates(self, after: float, before: float) -> list[float]:
        """The rates of the training steps that ended strictly between two moments."""
        begin, end = self._between(after, before)
        return [rate for rate in self._rates[begin:end] if rate is not None and isfinite(rate)]

    def _between(self, after: float, before: float) -> tuple[int, int]:
        begin = bisect_right(self._at, after)
        return begin, max(begin, bisect_left(self._at, before))


class Throughput(NamedTuple):
    """What the rates tell: ranks that became slower, and what they cannot tell."""

    breaches: list[Breach]
    unproven: list[str]


def judge_throughput(paces: Sequence[Pace], timeline: Timeline, ratio: float | None) -> Throughput:
    """Find ranks that are slower after a move than the ratio allows, by the rate just before it or before all moves."""
    found = Throughput([], [])
    if ratio is None:
        return found
    for pace in paces:
        for around in timeline.around():
            fall = _fall(pace, around, timeline.groups[0].started, ratio)
            if fall is None:
                continue
            if fall.is_told:
                at = around[1].completed
                found.breaches.append(Breach("throughput", pace.rank, None, at, f"rank {pace.rank} {fall.sentence}"))
                break
            found.unproven.append(f"throughput: rank {pace.rank} {fall.sentence}")
    return found


def rates_around(paces: Sequence[Pace], around: tuple[float, Group, float]) -> Mapping[str, float | None]:
    """The median rate of a rank before, during and after a move, over the training steps of all ranks."""
    end_before, group, next_start = around
    spans = {
        "before": (end_before, group.started),
        "during": (group.started, group.completed),
        "after": (group.completed, next_start),
    }
    pooled = {name: [rate for pace in paces for rate in pace.rates(*span)] for name, span in spans.items()}
    return {name: median(rates) if rates else None for name, rates in pooled.items()}


def least_steps(paces: Sequence[Pace], group: Group) -> Mapping[str, int]:
    """The steps before, during and after a move of the rank that made the fewest."""
    spans = {
        "before": (-inf, group.started),
        "during": (group.started, group.completed),
        "after": (group.completed, inf),
    }
    return {name: min((pace.steps(*span) for pace in paces), default=0) for name, span in spans.items()}


def few_steps(paces: Sequence[Pace], group: Group, name: str) -> Iterator[str]:
    """Say which ranks made too few steps before or after a move to judge it."""
    for pace in paces:
        for where, span in (("before", (-inf, group.started)), ("after", (group.completed, inf))):
            made = pace.steps(*span)
            if made < ENOUGH_STEPS:
                yield f"steps: rank {pace.rank} made {made} {where} {name}, {ENOUGH_STEPS} are needed"


class _Fall(NamedTuple):
    is_told: bool
    sentence: str


def _fall(pace: Pace, around: tuple[float, Group, float], first_move: float, ratio: float) -> _Fall | None:
    end_before, group, next_start = around
    before = _enough(pace, (end_before, group.started), (-inf, group.started))
    # A job may take the whole window of a move to come back to its pace.
    after = _enough(pace, (group.ends, next_start), (group.completed, next_start), (group.completed, inf))
    if min(len(before), len(after)) < ENOUGH_RATES:
        return _Fall(False, f"gave only {len(before)} rates before and {len(after)} after a move")
    falls = [_compare(baseline, after, ratio) for baseline in (before, pace.rates(-inf, first_move))]
    given = [fall for fall in falls if fall is not None]
    return max(given, key=lambda fall: fall.is_told, default=None)


def _enough(pace: Pace, *spans: tuple[float, float]) -> list[float]:
    """The rates of the first span that has enough of them, or else of the last."""
    rates: list[float] = []
    for span in spans:
        rates = pace.rates(*span)
        if len(rates) >= ENOUGH_RATES:
            break
    return rates


def _compare(before: list[float], after: list[float], ratio: float) -> _Fall | None:
    if len(before) < ENOUGH_RATES or median(after) >= ratio * median(before):
        return None
    ordered = sorted(before)
    spread = ordered[len(ordered) * 9 // 10] - ordered[len(ordered) // 10]
    # The median of n values spread like a normal distribution has the error 0.49 spread / sqrt(n).
    error = 0.49 * spread * sqrt(1 / len(before) + 1 / len(after))
    fall = median(before) - median(after)
    sentence = f"fell from {median(before):.4g} to {median(after):.4g} images/s, below {ratio:g} of its rate"
    if fall > max(spread, CERTAIN * error):
        return _Fall(True, f"{sentence} before the move")
    return _Fall(False, f"{sentence}, which was too unsteady to tell (eight tenths of it within {spread:.4g} images/s)")
