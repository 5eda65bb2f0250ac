"""The steps of each rank in one attempt of a run, and the comparison of the losses of two attempts."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import sub
from statistics import median
from typing import NamedTuple

from .limits import HIGHEST, LOSS, MOST_RANKS, TRAIN, number

CHECKPOINT = "checkpoint"
# Fewer equal losses can be a coincidence.
ENOUGH_LOSSES = 3
# Records that were read while they were written arrive in at least this part of the time that they took.
LIVE = 0.5
# A lost optimizer shows in this many steps after the first one, whose loss depends only on the weights.
LATER_STEPS = 5


class Saved(NamedTuple):
    """A checkpoint that the records of a rank mark: its step, and its begin and end on the clock of the rank."""

    step: int
    begin: float
    end: float


class RankSteps:
    """The steps of one rank in order, as columns of numbers; a record with a stride stands for several steps."""

    def __init__(self) -> None:
        self.step, self.stride = array("q"), array("q")
        self.t, self.seen, self.loss = array("d"), array("d"), array("d")
        self.saved: list[Saved] = []
        self.is_counted = self.is_live = False
        # The seconds by which the observer's clock is ahead of that of the rank.
        self.shift = 0.0
        self.repeated: list[int] = []
        self._began: float | None = None

    def add(self, step: int, t: float, seen: float, record: Mapping[str, object]) -> None:
        mark, phase = record.get("mark"), record.get("phase")
        loss, stride = number(record.get("loss")), number(record.get("stride"))
        # Sums of larger numbers are inexact, or not even finite.
        loss = loss if loss is not None and abs(loss) <= HIGHEST else None
        if mark == LOSS:
            if loss is not None and self.step[-1:] == array("q", [step]):
                self.loss[-1] = loss
        elif mark is not None:
            self._mark(step, t, str(mark), str(phase))
        elif phase in (None, TRAIN):
            self.step.append(step)
            self.stride.append(int(stride) if stride is not None and 1 <= stride <= HIGHEST else 1)
            self.t.append(t)
            self.seen.append(seen)
            self.loss.append(math.nan if loss is None else loss)
            # Another program than the script counts its steps, from the start of the process.
            self.is_counted = self.is_counted or bool(record.get("by"))

    def _mark(self, step: int, t: float, mark: str, phase: str) -> None:
        if phase != CHECKPOINT:
            return
        if mark == "begin":
            self._began = t
        elif self._began is not None:
            self.saved.append(Saved(step, self._began, t))
            self._began = None

    def in_order(self) -> RankSteps:
        """Return the steps in order, each record once; a step that a rank made twice is in ``repeated``."""
        order = sorted(range(len(self.step)), key=lambda index: (self.step[index], self.t[index], self.seen[index]))
        kept: list[int] = []
        for index in order:
            if not kept or self.step[kept[-1]] != self.step[index]:
                kept.append(index)
            elif self.t[kept[-1]] != self.t[index]:
                self.repeated.append(self.step[index])
        for name in ("step", "stride", "t", "seen", "loss"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, (column[index] for index in kept)))
        self.saved.sort()
        self._place_in_time()
        return self

    def _place_in_time(self) -> None:
        """Find out whether the observer read the records while they were written, and then how the clocks differ."""
        if len(self.t) > 1:
            self.is_live = max(self.seen) - min(self.seen) >= LIVE * (max(self.t) - min(self.t))
            self.shift = min(map(sub, self.seen, self.t)) if self.is_live else 0.0

    def shifted(self, offset: int) -> RankSteps:
        """Return the same steps with other numbers."""
        moved = RankSteps()
        moved.__dict__.update(self.__dict__)
        moved.step = array("q", (step + offset for step in self.step))
        moved.saved = [each._replace(step=each.step + offset) for each in self.saved]
        return moved

    @property
    def first(self) -> tuple[int, int]:
        """Return the first and the last step for which the first record can stand."""
        # The first record of a script with its own counter has no stride.
        stride = max(self.stride[0], self.stride[1] if len(self.stride) > 1 else 1)
        return self.step[0] - stride + 1, self.step[0]

    @property
    def last(self) -> int:
        return self.step[-1]

    def at(self, index: int) -> float:
        """Return the time of a record on the observer's clock, or on that of its rank if it was read much later."""
        return min(self.t[index] + self.shift, self.seen[index])

    def index_up_to(self, step: int) -> int:
        """Return the index of the last record up to a step; -1 without one."""
        return bisect_right(self.step, step) - 1

    def loss_of(self, step: int) -> float:
        """Return the loss of a step; NaN without one."""
        index = bisect_left(self.step, step)
        return self.loss[index] if index < len(self.step) and self.step[index] == step else math.nan

    def holes(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last step of each hole in the steps."""
        for index in range(1, len(self.step)):
            begin = self.step[index] - self.stride[index] + 1
            if begin > self.step[index - 1] + 1:
                yield self.step[index - 1] + 1, begin - 1

    def interval(self) -> float | None:
        """Return the usual time of a step; None with few steps."""
        if len(self.step) < ENOUGH_LOSSES + 1:
            return None
        made = range(1, len(self.step))
        return median((self.t[at] - self.t[at - 1]) / max(1, self.step[at] - self.step[at - 1]) for at in made)


def read_steps(records: Iterable[Mapping[str, object]]) -> dict[int, RankSteps]:
    """Return the steps of each rank; records without a rank, a step or a time are left out."""
    ranks: dict[int, RankSteps] = {}
    for record in records:
        rank, step = (_whole(record.get(key)) for key in ("rank", "step"))
        t, seen = (_time(record.get(key)) for key in ("t", "seen"))
        at = seen if t is None else t
        if rank is None or step is None or at is None or rank >= MOST_RANKS:
            continue
        ranks.setdefault(rank, RankSteps()).add(step, at, at if seen is None else seen, record)
    return {rank: steps.in_order() for rank, steps in sorted(ranks.items()) if len(steps.step)}


def _whole(value: object) -> int | None:
    given = _time(value)
    return int(given) if given is not None and given >= 0 and given == int(given) else None


def _time(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= HIGHEST:
        return float(value)
    return None


class LossComparison(NamedTuple):
    """The losses of steps that both attempts made: how many could be compared, and by how much they differ at most.

    ``is_constant`` is true if the losses would also be equal at other steps. ``has_diverged`` is true if the first
    step has its loss, but none of the next ones.
    """

    compared: int
    differing: int
    largest: float
    is_constant: bool
    has_diverged: bool

    @property
    def confirms(self) -> bool:
        """Return whether the losses show that both attempts made the same steps."""
        return self.compared >= ENOUGH_LOSSES and not self.differing and not self.is_constant


def compared(before: RankSteps, after: RankSteps, offset: int, tolerance: float) -> LossComparison:
    """Compare the losses of one rank; ``offset`` is added to the numbers of the second attempt."""
    differences: list[float] = []
    losses: list[float] = []
    first = 0
    for index, step in enumerate(after.step):
        if step + offset > before.last:
            break
        one, other = before.loss_of(step + offset), after.loss[index]
        if math.isfinite(one) and math.isfinite(other):
            first = first if differences else index
            differences.append(abs(one - other) / max(abs(one), abs(other)) if one != other else 0.0)
            losses.append(one)
    largest = max(differences, default=0.0)
    spread = max(losses, default=0.0) - min(losses, default=0.0)
    later = differences[1 : 1 + LATER_STEPS]
    is_first = bool(differences) and first == 0 and after.stride[0] == 1
    diverged = is_first and differences[0] <= tolerance and len(later) > 1 and min(later) > tolerance
    is_constant = spread <= tolerance * max(map(abs, losses), default=0.0)
    differing = sum(difference > tolerance for difference in differences)
    return LossComparison(len(differences), differing, largest, is_constant, diverged)


def together(each: Iterable[LossComparison]) -> LossComparison:
    """Return the comparison over all ranks; one rank that cannot be compared does not count."""
    known = [one for one in each if one.compared]
    return LossComparison(
        compared=sum(one.compared for one in known),
        differing=sum(one.differing for one in known),
        largest=max((one.largest for one in known), default=0.0),
        is_constant=all(one.is_constant for one in known),
        has_diverged=bool(known) and all(one.has_diverged for one in known),
    )
