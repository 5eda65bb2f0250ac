# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Pace: how many steps a rank made, and how fast, before, during and after a move."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from math import inf, isnan, nan, sqrt
from operator import ne
from statistics import median
from typing import Callable, List, NamedTuple, Protocol

from .limits import Breach
from .lines import Line, Lines, neighbours
from .marked_phases import MarkedPhases
from .move_windows import Group, Timeline
from .step_progress import ENOUGH_STEPS
from .stretches import Stretch, stretches
from .track import Track

ENOUGH_RATES = 10
# The number of standard errors that make a fall certain.
CERTAIN = 5
ALWAYS = (-inf, inf)
# Less time than this outside marked phases is an error of rounding.
LEAST_S = 1e-6
Rates = Callable[[float, float], List[float]]


class Paced(Protocol):
    """The steps and images of a rank between two times."""

    rank: int

    def steps(self, after: float, before: float) -> int:
        """Return how many optimizer steps ended strictly between two times."""

    def seen_images(self, after: float, before: float) -> float | None:
        """Return the images per second between two times, without marked phases; None if unknown."""


class KeptPace:
    """The steps and images of a rank before, during and after each move."""

    def __init__(self, pace: Paced, timeline: Timeline) -> None:
        sides = (span for group in timeline.groups for span in _sides(group).values())
        spans = (span for around in timeline.around() for span in _spans(around).values())
        self.rank = pace.rank
        self._steps = {span: pace.steps(*span) for span in (ALWAYS, *sides)}
        self._images = {span: pace.seen_images(*span) for span in spans}

    def steps(self, after: float, before: float) -> int:
        """Return how many optimizer steps ended strictly between two times."""
        return self._steps[after, before]

    def seen_images(self, after: float, before: float) -> float | None:
        """Return the images per second between two times, without marked phases; None if unknown."""
        return self._images[after, before]


def _spans(around: tuple[float, Group, float]) -> dict[str, tuple[float, float]]:
    """Return the times before a move since the one before it, during it, and after it until the next one."""
    end_before, group, next_start = around
    spans = (end_before, group.started), (group.started, group.completed), (group.completed, next_start)
    return dict(zip(("before", "during", "after"), spans))


def _sides(group: Group) -> dict[str, tuple[float, float]]:
    """Return all times before, during and after a move."""
    return _spans((-inf, group, inf))


class Pace:
    """The steps of a rank after its warm-up, with the rates that it reports and those by the observer's clock."""

    def __init__(self, track: Track, first_step: int, marked: MarkedPhases) -> None:
        made = track.steps
        warm = made.picked(range(bisect_left(made.step, first_step), len(made)))
        steps = warm.ordered(warm.at)
        self.rank = track.rank
        self._at = steps.at
        self.began = steps.at[0] if len(steps) else None
        self._made = _made(steps)
        self._rates = _rates(steps)
        self.images = images_of_step(steps)
        self._marked = marked
        self._stretches = list(stretches(steps, marked))
        self._begins = [stretch.begin for stretch in self._stretches]
        self._ends = [stretch.end for stretch in self._stretches]

    def steps(self, after: float, before: float) -> int:
        """Return how many optimizer steps ended strictly between two times."""
        begin, end = self._between(after, before)
        return self._made[end] - self._made[begin]

    def rates(self, after: float, before: float) -> list[float]:
        """Return the rates of the training steps that ended strictly between two times."""
        begin, end = self._between(after, before)
        return [rate for rate in self._rates[begin:end] if not isnan(rate)]

    def seen_rates(self, after: float, before: float) -> list[float]:
        """Return the steps per second of the training between two times, on the observer's clock."""
        return [one.rate for one in self.stretches(after, before)]

    def seen_images(self, after: float, before: float) -> float | None:
        """Return the images per second between two times, without marked phases; None if unknown.

        The times are those of the observer. A step is spread evenly over the time since the one before it, so that a
        silence takes its share.
        """
        if self.images is None:
            return None
        made, seconds = self.made_in(after, before)
        return self.images * made / seconds if seconds > 0 else None

    def made_in(self, after: float, before: float) -> tuple[float, float]:
        """Return the steps that were made between two times of the observer, and the seconds, without marked phases.

        Steps that arrived at one moment were all made since the moment before it.
        """
        if not len(self._at):
            return 0.0, 0.0
        begin, end = max(after, self._at[0]), self._at[-1] if before == inf else before
        made = 0.0
        last = max(0, bisect_right(self._at, begin) - 1)
        while last + 1 < len(self._at) and self._at[last] < end:
            since, until = self._at[last], self._at[last + 1]
            upto = self._last_at(last + 1)
            trained = self._trained(since, until)
            if trained > LEAST_S:
                share = self._trained(max(since, begin), min(until, end)) / trained
                made += (self._made[upto + 1] - self._made[last + 1]) * share
            last = upto
        return made, max(0.0, self._trained(begin, end))

    def moments(self, before: float) -> int:
        """Return how many moments with steps came after the first one and before a time."""
        return sum(map(ne, islice(self._at, 1, bisect_left(self._at, before)), self._at))

    def silences(self, after: float, shortest: float) -> Iterator[Silence]:
        """Yield the times between two steps that are longer than this without their marked phases."""
        for index in range(max(0, bisect_right(self._at, after) - 1), len(self._at) - 1):
            since, until = self._at[index], self._at[index + 1]
            if until - since > shortest and (seconds := self._trained(since, until)) > shortest:
                yield Silence(since, until, seconds)

    def stretches(self, after: float, before: float) -> Sequence[Stretch]:
        """Return the stretches of training between two times by the observer's clock."""
        begin, end = bisect_left(self._begins, after), bisect_right(self._ends, before)
        return self._stretches[begin:end]

    def _trained(self, begin: float, end: float) -> float:
        """Return the seconds between two times without marked phases."""
        return end - begin - self._marked.within(begin, end)[0]

    def _last_at(self, index: int) -> int:
        """Return the index of the last step that arrived at the same moment."""
        while index + 1 < len(self._at) and self._at[index + 1] == self._at[index]:
            index += 1
        return index

    def _between(self, after: float, before: float) -> tuple[int, int]:
        begin = bisect_right(self._at, after)
        return begin, max(begin, bisect_left(self._at, before))


def _made(steps: Lines) -> Sequence[int]:
    """Return how many optimizer steps were made before each line, and at last all of them."""
    strides = [kind.stride for kind in steps.kinds]
    if all(kind.stride == 1 for kind in steps.used()):
        return range(len(steps) + 1)
    return [0, *accumulate(strides[kind] for kind in steps.kind)]


def _rates(steps: Lines) -> Sequence[float]:
    """Return the rate of each line; NaN without a rate or for other phases."""
    if all(kind.is_train for kind in steps.used()):
        return steps.rate
    is_train = [kind.is_train for kind in steps.kinds]
    return array("d", (rate if is_train[kind] else nan for rate, kind in zip(steps.rate, steps.kind)))


def images_of_step(steps: Sequence[Line]) -> float | None:
    """Return the images per step of a rank, from its reported rates and its clock."""
    found = []
    for before, after in neighbours(steps):
        rate = after.rate
        if rate and before.is_train and after.is_train and after.t > before.t:
            found.append(rate * (after.t - before.t) / max(1, after.step - before.step))
    return median(found) if found else None


class Silence(NamedTuple):
    """A time between two steps, with its seconds outside marked phases."""

    begin: float
    end: float
    seconds: float


class Throughput(NamedTuple):
    """The ranks that became slower, and the rates that are not enough to judge."""

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
            seen = _fall(pace.seen_rates, "steps/s by the observer's clock", around, first_move, ratio)
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


def rates_around(paces: Sequence[Paced], around: tuple[float, Group, float]) -> Mapping[str, float | None]:
    """Return the images per second before, during and after a move on the observer's clock, including stalls."""
    result = {
        name: [rate for pace in paces if (rate := pace.seen_images(*span)) is not None]
        for name, span in _spans(around).items()
    }
    return {name: median(rates) if rates else None for name, rates in result.items()}


def least_steps(paces: Sequence[Paced], group: Group) -> Mapping[str, int]:
    """Return the steps before, during and after a move of the rank that made the fewest."""
    return {name: min((pace.steps(*span) for pace in paces), default=0) for name, span in _sides(group).items()}


def few_steps(paces: Sequence[Paced], group: Group, name: str) -> Iterator[str]:
    """Yield the ranks that made too few steps before or after a move to judge it."""
    for pace in paces:
        for where in ("before", "after"):
            made = pace.steps(*_sides(group)[where])
            if made < ENOUGH_STEPS:
                yield f"steps: rank {pace.rank} made {made} {where} {name}, {ENOUGH_STEPS} are needed"


class _Fall(NamedTuple):
    is_reported: bool
    sentence: str


def _fall(rates: Rates, unit: str, around: tuple[float, Group, float], first_move: float, ratio: float) -> _Fall | None:
    end_before, group, next_start = around
    before = _enough(rates, (end_before, group.started), (-inf, group.started))
    # A job may take the whole window of a move to come back to its pace.
    after = _enough(rates, (group.ends, next_start), (group.completed, next_start), (group.completed, inf))
    if min(len(before), len(after)) < ENOUGH_RATES:
        return _Fall(False, f"gave only {len(before)} rates before and {len(after)} after a move")
    falls = [_compare(baseline, after, ratio, unit) for baseline in (before, rates(-inf, first_move))]
    given = [fall for fall in falls if fall is not None]
    return max(given, key=lambda fall: fall.is_reported, default=None)


def _enough(rates: Rates, *spans: tuple[float, float]) -> list[float]:
    """Return the rates of the first span that has enough of them, otherwise of the last."""
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
    return _Fall(False, f"{sentence}, which was too unsteady to tell (eight tenths of it within {spread:.4g} {unit})")
