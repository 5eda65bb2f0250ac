# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Clocks: every line put on the observer's clock, and the moments at which a rank's own clock was set.

Where the observer stamped nothing, a rank's own clock has to do. It is then held against the other ranks: they train in
step, so time that passed for one rank alone did not pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from .lines import Line, Track, split_steps, typical_interval
from .moves import Timeline

CLOCK_STEP_S = 1.0
SETTLED_LINES = 5
# An hour may make two clocks drift apart by a clock step; these make no drift and outlast every delay.
LOOK_AROUND_S = 600.0
LOOK_AROUND_LINES = 20


class ClockStep(NamedTuple):
    """A rank's clock was set: by so many seconds, just before this step."""

    rank: int
    step: int
    at: float
    seconds: float


def tracks_of(ranks: Mapping[int, list[Line]], timeline: Timeline) -> tuple[list[Track], list[ClockStep]]:
    """Build the tracks with all lines on one clock, and tell where a rank's own clock was set."""
    split = {rank: split_steps(lines) for rank, lines in ranks.items()}
    clocks = _OwnClocks({rank: steps for rank, (steps, _repeated) in split.items()}, timeline)
    tracks, found = [], []
    for rank, lines in ranks.items():
        (steps, repeated), placed = split[rank], lines
        if all(line.seen is not None for line in lines):
            set_by = [] if repeated else list(_set_as_seen(rank, steps))
        else:
            is_alone = not repeated and all(line.seen is None for line in lines)
            set_by = list(clocks.clock_steps(rank)) if is_alone else []
            placed = _put_on_observers_clock(_as_written(lines, repeated), set_by, clocks.offset(rank))
        found += set_by
        # Steps made again are found by number, but happened later.
        written = sorted(placed, key=lambda line: line.at) if repeated else _known_by(placed)
        steps, repeated = split_steps(sorted(written, key=lambda line: line.step) if repeated else written)
        times = [line.at for line in written]
        tracks.append(Track(rank, written, times, steps, repeated, typical_interval(times)))
    return tracks, found


def _as_written(lines: list[Line], repeated: list[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.t) if repeated else lines


def goes_back(steps: Sequence[Line], index: int) -> bool:
    """Tell whether the step after one at an index was made before it, by every clock there is, not by a clock set back.

    A clock that was set stays so. Two steps in the wrong order lie between their neighbours.
    """
    before, after = steps[index], steps[index + 1]
    fall = before.t - after.t
    if fall <= 0:
        return False
    is_between = (index == 0 or steps[index - 1].t <= after.t) and (
        index + 2 >= len(steps) or before.t <= steps[index + 2].t
    )
    if before.seen is None or after.seen is None or before.seen == after.seen:
        return is_between
    seen_fall = before.seen - after.seen
    return seen_fall > 0 and (is_between or seen_fall > fall / 2)


def _is_near_swap(steps: Sequence[Line], index: int) -> bool:
    """A step in the wrong order makes the times to both its neighbours wrong."""
    near = range(max(0, index - 1), min(index + 2, len(steps) - 1))
    return any(goes_back(steps, other) for other in near)


def _set_as_seen(rank: int, steps: list[Line]) -> Iterator[ClockStep]:
    """Clock steps of a rank whose every line was stamped: the offset of its clock changes at once and for good.

    Lines come late at times, never early, so of some lines the least offset is the true one.
    """
    offsets = [line.at - line.t for line in steps]
    begin = 0
    for index in range(1, len(steps)):
        jump = abs(offsets[index] - offsets[index - 1])
        if jump < CLOCK_STEP_S:
            continue
        if not (_is_settled(steps[begin:index]) and _is_settled(steps[index:])):
            continue
        before = _least(steps, offsets, range(index - 1, begin - 1, -1))
        after = _least(steps, offsets, range(index, len(steps)))
        is_set = after > before + CLOCK_STEP_S or offsets[index] < before - CLOCK_STEP_S
        if is_set and jump > abs(after - before) / 2:
            begin = index
            yield ClockStep(rank, steps[index].step, steps[index].at, before - after)


def _is_settled(steps: list[Line]) -> bool:
    """Enough lines, and not all of them delivered at once after a delay."""
    return len(steps) >= SETTLED_LINES and abs(steps[-1].at - steps[0].at) >= CLOCK_STEP_S


def _least(steps: list[Line], offsets: list[float], indexes: range) -> float:
    least, first = offsets[indexes[0]], steps[indexes[0]].at
    for count, index in enumerate(indexes):
        if count >= LOOK_AROUND_LINES and abs(steps[index].at - first) > LOOK_AROUND_S:
            break
        least = min(least, offsets[index])
    return least


def _put_on_observers_clock(lines: list[Line], set_by: list[ClockStep], offset: float) -> list[Line]:
    jumps, jumped = [*reversed(set_by)], 0.0
    placed = []
    for line in lines:
        while jumps and line.step >= jumps[-1].step:
            jumped += jumps.pop().seconds
        if line.seen is None:
            placed.append(line._replace(at=line.t + offset - jumped))
        else:
            offset = line.seen - line.t
            placed.append(line)
    return placed


def _known_by(lines: list[Line]) -> list[Line]:
    """A line that arrives proves all lines written before it, also those that come after it."""
    known = [*lines]
    for index in range(len(lines) - 2, -1, -1):
        if known[index].at > known[index + 1].at:
            known[index] = known[index]._replace(at=known[index + 1].at)
    return known


class _OwnClocks:
    """The ranks' own clocks, compared where the observer stamped nothing."""

    def __init__(self, steps: Mapping[int, list[Line]], timeline: Timeline) -> None:
        self._steps = steps
        self._times = {rank: {line.step: line.t for line in lines} for rank, lines in steps.items()}
        self._timeline = timeline

    def offset(self, rank: int) -> float:
        """From the rank's clock to the observer's: by its own first stamp, or by stamped steps of its peers."""
        own = next((line.seen - line.t for line in self._steps[rank] if line.seen is not None), None)
        if own is not None:
            return own
        times = self._times[rank]
        stamped = (line for lines in self._steps.values() for line in lines if line.seen is not None)
        offsets = [line.at - times[line.step] for line in stamped if line.step in times]
        return median(offsets) if offsets else 0.0

    def clock_steps(self, rank: int) -> Iterator[ClockStep]:
        """Where the rank's clock went back, or on by more than the clock of a peer that was not moving."""
        steps, jumped = self._steps[rank], 0.0
        interval = typical_interval([line.t for line in steps])
        for index, (before, after) in enumerate(zip(steps, steps[1:])):
            went = after.t - before.t
            if 0 <= went < max(CLOCK_STEP_S, 3 * interval) or _is_near_swap(steps, index):
                continue
            expected = min(self._peers(rank, before.step, after.step), default=max(went, interval))
            if went < 0 or went - expected >= CLOCK_STEP_S:
                jumped += went - expected
                yield ClockStep(rank, after.step, after.t - jumped, went - expected)

    def _peers(self, rank: int, before: int, after: int) -> Iterator[float]:
        for peer, times in self._times.items():
            begin, end = times.get(before), times.get(after)
            if peer == rank or begin is None or end is None or end < begin:
                continue
            if not any(peer in group.ranks for group in self._timeline.moving(begin, end)):
                yield end - begin
