"""Pace: how many steps a rank made, and how fast, before, during and after a move."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice
from math import inf, isnan, nan
from operator import ne
from statistics import median
from typing import NamedTuple, Protocol

from .lines import Line, Lines, neighbours
from .marked_phases import MarkedPhases, Stretch, stretches
from .move_windows import MoveGroup, Timeline
from .step_progress import ENOUGH_STEPS
from .step_records import Track

ALWAYS = (-inf, inf)
ENOUGH_READS = 3
# The intervals before and after a silence that show the pace around it.
AROUND = 5
# A shorter time outside marked phases is a rounding error.
LEAST_S = 1e-6
IMAGES, STEPS = "images/s", "steps/s"


class Paced(Protocol):
    """The steps of a rank between two times; ``images`` are the images of a step, None if unknown."""

    rank: int
    images: float | None

    def steps(self, after: float, before: float) -> int:
        """Return how many optimizer steps ended strictly between two times."""

    def seen_rate(self, after: float, before: float) -> float | None:
        """Return the steps per second between two times, without marked phases; None if unknown."""

    def usual_rate(self, after: float, before: float) -> float | None:
        """Return the steps per second of the reads between two times; None if unknown."""


class Undisturbed(NamedTuple):
    """The steps between the first and the last of some reads, and the seconds without marked phases."""

    made: int
    seconds: float
    reads: int


class KeptPace:
    """The steps and rates of a rank before, during and after each move."""

    def __init__(self, pace: Paced, timeline: Timeline) -> None:
        sides = (span for group in timeline.groups for span in _sides(group).values())
        spans = [span for around in timeline.around() for span in _spans(around).values()]
        self.rank, self.images = pace.rank, pace.images
        self._steps = {span: pace.steps(*span) for span in (ALWAYS, *sides)}
        self._seen = {span: pace.seen_rate(*span) for span in spans}
        self._usual = {span: pace.usual_rate(*span) for span in spans}

    def steps(self, after: float, before: float) -> int:
        """Return how many optimizer steps ended strictly between two times."""
        return self._steps[after, before]

    def seen_rate(self, after: float, before: float) -> float | None:
        """Return the steps per second between two times, without marked phases; None if unknown."""
        return self._seen[after, before]

    def usual_rate(self, after: float, before: float) -> float | None:
        """Return the steps per second of the reads between two times; None if unknown."""
        return self._usual[after, before]


def _spans(around: tuple[float, MoveGroup, float]) -> dict[str, tuple[float, float]]:
    """Return the times before a move since the previous one, during it, and after it until the next one."""
    end_before, group, next_start = around
    spans = (end_before, group.started), (group.started, group.completed), (group.completed, next_start)
    return dict(zip(("before", "during", "after"), spans))


def _sides(group: MoveGroup) -> dict[str, tuple[float, float]]:
    """Return all times before, during and after a move."""
    return _spans((-inf, group, inf))


class Pace:
    """The steps of a rank after its warm-up, with its reported rates and those on the observer's clock."""

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

    def seen_rate(self, after: float, before: float) -> float | None:
        """Return the steps per second between two times, without marked phases; None if unknown.

        The times are on the observer's clock. A step is spread evenly over the time since the previous one, so that a
        silence gets its share.
        """
        made, seconds = self.made_in(after, before)
        return made / seconds if seconds > 0 else None

    def usual_rate(self, after: float, before: float) -> float | None:
        """Return the steps per second from the first to the last read between two times; None if unknown."""
        found = self.undisturbed(after, before)
        return None if found is None else found.made / found.seconds

    def undisturbed(self, after: float, before: float) -> Undisturbed | None:
        """Return the steps from the first to the last read between two times; None for fewer than three reads.

        If a disturbance begins between two reads, the second read still contains the steps before it.
        """
        begin, end = bisect_left(self._at, after), bisect_right(self._at, before) - 1
        if begin >= end:
            return None
        first, last = self._at[begin], self._at[end]
        reads = 1 + sum(map(ne, islice(self._at, begin + 1, end + 1), islice(self._at, begin, end)))
        seconds = self._trained(first, last)
        made = self._made[end + 1] - self._made[self._last_at(begin) + 1]
        return Undisturbed(made, seconds, reads) if reads >= ENOUGH_READS and made > 0 and seconds > 0 else None

    def made_since(self, after: float, before: float, rate: float) -> tuple[float, float]:
        """Return the steps and seconds between two times, assuming ``rate`` steps per second before the first one."""
        made, seconds = self.made_in(after, before)
        last = bisect_right(self._at, after) - 1
        if 0 <= last < len(self._at) - 1 and self._at[last] < after:
            upto, until = self._last_at(last + 1), self._at[last + 1]
            together, trained = self._made[upto + 1] - self._made[last + 1], self._trained(self._at[last], until)
            spread = together * self._trained(after, min(until, before)) / trained if trained > LEAST_S else 0.0
            # Steps that arrived after this time were made before it, as far as the rank had time for them.
            later = max(0.0, together - rate * self._trained(self._at[last], after))
            made += (later if until <= before else min(spread, later)) - spread
        return made, seconds

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

    def silences(self, after: float, shortest: float, usual_times: float) -> Iterator[Silence]:
        """Yield the times between two steps that exceed ``shortest``, and a multiple of the times around them.

        Marked phases do not count.
        """
        for index in range(max(0, bisect_right(self._at, after) - 1), len(self._at) - 1):
            since, until = self._at[index], self._at[index + 1]
            if until - since > shortest and (seconds := self._trained(since, until)) > shortest:
                around = self._usual_around(since, until)
                if seconds > usual_times * around:
                    yield Silence(since, until, seconds, around)

    def _usual_around(self, since: float, until: float) -> float:
        """Return the usual time between two reads just before and after a silence; 0 if there are none."""
        found = []
        for _turn in range(AROUND):
            before, after = bisect_left(self._at, since) - 1, bisect_right(self._at, until)
            if before >= 0:
                found.append(self._trained(self._at[before], since))
                since = self._at[before]
            if after < len(self._at):
                found.append(self._trained(until, self._at[after]))
                until = self._at[after]
        return median(found) if found else 0.0

    def stretches(self, after: float, before: float) -> Sequence[Stretch]:
        """Return the stretches of training between two times on the observer's clock."""
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
    """Return how many optimizer steps were made before each line, followed by the total."""
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
    """A time between two steps, with its seconds outside marked phases, and the usual seconds around it."""

    begin: float
    end: float
    seconds: float
    usual_s: float = 0.0


def rates_around(paces: Sequence[Paced], around: tuple[float, MoveGroup, float]) -> Mapping[str, float | str | None]:
    """Return the images per second before, during and after a move on the observer's clock, including stalls.

    They are steps per second if no rank reports images. The rate before a move ends with the last read before it: the
    next read may come after the stall.
    """
    has_images = any(pace.images for pace in paces)
    result: dict[str, float | str | None] = {"unit": IMAGES if has_images else STEPS}
    for name, span in _spans(around).items():
        worth = [(pace.images if has_images else 1.0, pace) for pace in paces]
        given = [(each, (pace.usual_rate if name == "before" else pace.seen_rate)(*span)) for each, pace in worth]
        rates = [each * rate for each, rate in given if each is not None and rate is not None]
        result[name] = median(rates) if rates else None
    return result


def least_steps(paces: Sequence[Paced], group: MoveGroup) -> Mapping[str, int]:
    """Return the fewest steps that a rank made before, during and after a move."""
    return {name: min((pace.steps(*span) for pace in paces), default=0) for name, span in _sides(group).items()}


def few_steps(paces: Sequence[Paced], group: MoveGroup, name: str) -> Iterator[str]:
    """Yield the ranks that made too few steps before or after a move to judge it."""
    for pace in paces:
        for where in ("before", "after"):
            made = pace.steps(*_sides(group)[where])
            if made < ENOUGH_STEPS:
                yield f"steps: rank {pace.rank} made {made} {where} {name}, {ENOUGH_STEPS} are needed"
