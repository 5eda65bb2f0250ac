# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Throughput: the ranks that a move slowed, according to their reported rates and to the observer's clock."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, sqrt
from statistics import median
from typing import Callable, List, NamedTuple

from .limits import Breach
from .move_windows import MoveGroup, Timeline
from .pace import Pace

ENOUGH_RATES = 10
# A fall by more standard errors than this is certain.
CERTAIN = 5
Rates = Callable[[float, float], List[float]]


class Throughput(NamedTuple):
    """The ranks that became slower, and those with too few rates to judge."""

    breaches: list[Breach]
    unproven: list[str]


def judge_throughput(paces: Iterable[Pace], timeline: Timeline, ratio: float | None) -> Throughput:
    """Return the ranks that a move slowed more than the ratio allows, compared with before it or before all moves."""
    found = Throughput([], [])
    if ratio is None:
        return found
    for pace in paces:
        for around in timeline.around():
            first_move = timeline.groups[0].started
            fall = _fall(pace.rates, "images/s", around, first_move, ratio)
            seen = _fall(pace.seen_rates, "steps/s on the observer's clock", around, first_move, ratio)
            if seen is not None and seen.is_reported:
                fall = fall if fall is not None and fall.is_reported else seen
            if fall is None:
                continue
            if fall.is_reported:
                at = around[1].completed
                found.breaches.append(Breach("throughput", pace.rank, None, at, f"rank {pace.rank} {fall.sentence}"))
                break
            found.unproven.append(f"throughput: rank {pace.rank} {fall.sentence}")
    return found


class _Fall(NamedTuple):
    is_reported: bool
    sentence: str


def _fall(
    rates: Rates, unit: str, around: tuple[float, MoveGroup, float], first_move: float, ratio: float
) -> _Fall | None:
    end_before, group, next_start = around
    before = _enough(rates, (end_before, group.started), (-inf, group.started))
    # A job may take the whole window of a move to regain its pace.
    after = _enough(rates, (group.ends, next_start), (group.completed, next_start), (group.completed, inf))
    if min(len(before), len(after)) < ENOUGH_RATES:
        return _Fall(False, f"reported only {len(before)} rates before and {len(after)} after a move")
    falls = [_compare(baseline, after, ratio, unit) for baseline in (before, rates(-inf, first_move))]
    given = [fall for fall in falls if fall is not None]
    return max(given, key=lambda fall: fall.is_reported, default=None)


def _enough(rates: Rates, *spans: tuple[float, float]) -> list[float]:
    """Return the rates of the first span with enough of them, otherwise those of the last span."""
    found: list[float] = []
    for span in spans:
        found = rates(*span)
        if len(found) >= ENOUGH_RATES:
            break
    return found


def _compare(before: list[float], after: list[float], ratio: float, unit: str) -> _Fall | None:
    if len(before) < ENOUGH_RATES or median(after) >= ratio * median(before):
        return None
    ordered = sorted(before)
    spread = ordered[len(ordered) * 9 // 10] - ordered[len(ordered) // 10]
    # The median of n values spread like a normal distribution has the error 0.49 spread / sqrt(n).
    error = 0.49 * spread * sqrt(1 / len(before) + 1 / len(after))
    fall = median(before) - median(after)
    sentence = f"fell from {median(before):.4g} to {median(after):.4g} {unit}, below {ratio:g} of its rate"
    if fall > max(spread, CERTAIN * error):
        return _Fall(True, f"{sentence} before the move")
    return _Fall(False, f"{sentence}, which was too unsteady to judge (eight tenths of it within {spread:.4g} {unit})")
