# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Clocks: put every line on the observer's clock, and find the moments at which the clock of a rank was set.

If the observer stamped nothing, the clock of the rank is used. It is compared with the clocks of the other ranks: they
train in step, so time that passed for only one rank did not pass.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from statistics import median
from typing import NamedTuple

from .lines import Line, Lines, neighbours
from .move_windows import Timeline
from .step_records import Track, split_steps, typical_interval

CLOCK_STEP_S = 1.0
SETTLED_LINES = 5
# In an hour, two clocks may drift apart by a clock step. These are too short for drift and longer than any delay.
LOOK_AROUND_S = 600.0
LOOK_AROUND_LINES = 20


class ClockStep(NamedTuple):
    """The clock of a rank was set by a number of seconds, just before a step."""

    rank: int
    step: int
    at: float
    seconds: float


def tracks_of(ranks: Mapping[int, Lines], timeline: Timeline) -> tuple[list[Track], list[ClockStep]]:
    """Return the tracks with all lines on one clock, and the moments at which the clock of a rank was set."""
    split = {rank: split_steps(lines) for rank, lines in ranks.items()}
    clocks = _OwnClocks({rank: steps for rank, (steps, _repeated) in split.items()}, timeline)
    tracks, found = [], []
    for rank, lines in ranks.items():
        (steps, repeated), placed = split[rank], lines
        if lines.is_stamped:
            set_by = [] if repeated else list(_set_as_seen(rank, steps))
        else:
            is_alone = not (repeated or lines.stamps)
            set_by = list(clocks.clock_steps(rank)) if is_alone else []
            placed = _put_on_observers_clock(_as_written(lines, repeated), set_by, clocks.offset(rank))
        found += set_by
        # Repeated steps are sorted in by number, but happened later.
        written = placed.ordered(placed.at) if repeated else _known_by(placed)
        steps, repeated = split_steps(written.ordered(written.step) if repeated else written)
        tracks.append(Track(rank, written, steps, repeated, typical_interval(written.at)))
    return tracks, found


def _as_written(lines: Lines, repeated: Lines) -> Lines:
    return lines.ordered(lines.t) if repeated else lines


def goes_back(steps: Lines, index: int) -> bool:
    """Return whether the step at an index was made after the next one, by every clock and not because one was set back.

    A clock that was set stays so. Two steps in the wrong order lie between their neighbours.
    """
    fall = steps.t[index] - steps.t[index + 1]
    if fall <= 0:
        return False
    before, after = steps[index], steps[index + 1]
    is_between = (index == 0 or steps[index - 1].t <= after.t) and (
        index + 2 >= len(steps) or before.t <= steps[index + 2].t
    )
    if before.seen is None or after.seen is None:
        return is_between
    seen_fall = before.seen - after.seen
    return seen_fall >= 0 and (is_between or seen_fall > fall / 2)


def _is_near_swap(steps: Lines, index: int) -> bool:
    """Return whether steps in the wrong order are near: they make the times to both neighbours wrong."""
    near = range(max(0, index - 1), min(index + 2, len(steps) - 1))
    return any(goes_back(steps, other) for other in near)


def _set_as_seen(rank: int, steps: Lines) -> Iterator[ClockStep]:
    """Yield the clock steps of a rank with stamps on all lines: the offset of its clock changes permanently.

    Lines come late at times, never early, so of some lines the least offset is the true one.
    """
    offsets = array("d", (at - t for at, t in zip(steps.at, steps.t)))
    least: _Least | None = None
    begin = 0
    for index in range(SETTLED_LINES, len(steps)):
        jump = abs(offsets[index] - offsets[index - 1])
        if jump < CLOCK_STEP_S:
            continue
        if not (_is_settled(steps, begin, index) and _is_settled(steps, index, len(steps))):
            continue
        least = least or _Least(steps, offsets)
        before, after = least.before(index, begin), least.after(index)
        is_set = after > before + CLOCK_STEP_S or offsets[index] < before - CLOCK_STEP_S
        if is_set and jump > abs(after - before) / 2:
            begin = index
            yield ClockStep(rank, steps.step[index], steps.at[index], before - after)


def _is_settled(steps: Lines, begin: int, end: int) -> bool:
    """Return whether enough lines are between two indexes, and not all of them were delivered at once after a delay."""
    return end - begin >= SETTLED_LINES and abs(steps.at[end - 1] - steps.at[begin]) >= CLOCK_STEP_S


class _Least:
    """The least offset of the lines around an index, found in constant time."""

    def __init__(self, steps: Lines, offsets: array[float]) -> None:
        self._times = array("d", accumulate(steps.at, max))
        # Each row holds the least of twice as many neighbours as the row before it.
        self._rows = [offsets]
        while 2 * (width := 1 << (len(self._rows) - 1)) <= len(offsets):
            row = self._rows[-1]
            self._rows.append(array("d", map(min, row, row[width:])))

    def before(self, index: int, begin: int) -> float:
        """Return the least offset of the lines just before an index, from another index on."""
        far = bisect_left(self._times, self._times[index - 1] - LOOK_AROUND_S)
        return self._between(max(begin, min(far, index - LOOK_AROUND_LINES)), index)

    def after(self, index: int) -> float:
        """Return the least offset of the lines from an index on."""
        far = bisect_right(self._times, self._times[index] + LOOK_AROUND_S)
        return self._between(index, min(len(self._times), max(far, index + LOOK_AROUND_LINES)))

    def _between(self, begin: int, end: int) -> float:
        row = (end - begin).bit_length() - 1
        return min(self._rows[row][begin], self._rows[row][end - (1 << row)])


def _put_on_observers_clock(lines: Lines, set_by: list[ClockStep], offset: float) -> Lines:
    jumps, jumped = [*reversed(set_by)], 0.0
    placed, heard = array("d"), -math.inf
    for line in lines:
        while jumps and line.step >= jumps[-1].step:
            jumped += jumps.pop().seconds
        if line.seen is None:
            # Lines that arrived before it were written before it, also if its clock was set back.
            placed.append(max(heard, line.t + offset - jumped))
        else:
            offset, heard = line.seen - line.t, line.seen
            placed.append(line.at)
    return _not_before_known(lines.placed(placed))


def _not_before_known(lines: Lines) -> Lines:
    """Return the lines, those without a stamp as late as the next one allows: they do not show progress."""
    placed = array("d")
    stamp: tuple[float, float] | None = None
    for line in reversed(lines):
        at = line.at
        if line.seen is not None:
            stamp = line.seen, line.t
        elif stamp is not None:
            seen, written = stamp
            at = max(at, seen - max(0.0, written - line.t))
        placed.append(at)
    return lines.placed(placed[::-1])


def _known_by(lines: Lines) -> Lines:
    """Return the lines, each at the time at which it or a later one arrived, which shows that it had been written."""
    return lines.placed(array("d", accumulate(reversed(lines.at), min))[::-1])


class _OwnClocks:
    """The clocks of the ranks, which are compared if the observer stamped nothing."""

    def __init__(self, steps: Mapping[int, Lines], timeline: Timeline) -> None:
        self._steps = steps
        self._offsets: dict[int, float] = {}
        self._timeline = timeline

    def offset(self, rank: int) -> float:
        """Return the offset of the observer's clock from a rank's, by its first stamp or by those of its peers."""
        if rank not in self._offsets:
            self._offsets[rank] = self._offset(rank)
        return self._offsets[rank]

    def _offset(self, rank: int) -> float:
        own = next((line.seen - line.t for line in self._steps[rank] if line.seen is not None), None)
        if own is not None:
            return own
        times = dict(zip(self._steps[rank].step, self._steps[rank].t))
        stamped = (line for lines in self._steps.values() if lines.stamps for line in lines if line.seen is not None)
        offsets = [line.at - times[line.step] for line in stamped if line.step in times]
        return median(offsets) if offsets else 0.0

    def clock_steps(self, rank: int) -> Iterator[ClockStep]:
        """Yield where the clock of a rank went back, or forward by more than that of a peer that was not moving."""
        steps, jumped = self._steps[rank], 0.0
        interval = typical_interval(steps.t)
        for index, (before, after) in enumerate(neighbours(steps)):
            went = after.t - before.t
            is_back, is_long = went < 0, went >= max(CLOCK_STEP_S, 3 * interval)
            if not (is_back or is_long) or _is_near_swap(steps, index):
                continue
            peers = dict(self._peers(rank, before.step, after.step))
            if not is_back and self._most_agree(rank, went, peers):
                continue
            expected = min(peers.values(), default=max(went, interval))
            if is_back or went - expected >= CLOCK_STEP_S:
                jumped += went - expected
                yield ClockStep(rank, after.step, after.t - jumped, went - expected)

    def _most_agree(self, rank: int, went: float, peers: Mapping[int, float]) -> bool:
        """Return whether most clocks, one for each host, show the same silence.

        The silence is then real. A clock without it belongs to a machine that was stunned, in a move or otherwise.
        """
        alike = {self._host(peer) for peer, took in peers.items() if abs(took - went) < CLOCK_STEP_S}
        others = {self._host(peer) for peer in peers} - alike - {self._host(rank)}
        return len(alike | {self._host(rank)}) > max(1, len(others))

    def _host(self, rank: int) -> str:
        """Return the name of the clock of a rank: its host, or the rank itself if it names none."""
        host = self._steps[rank][0].identity.get("host")
        return str(rank) if host is None else f"host {host}"

    def _peers(self, rank: int, before: int, after: int) -> Iterator[tuple[int, float]]:
        """Yield how long the steps took each other rank, by the observer's clock or, if it did not move, by its own."""
        for peer, lines in self._steps.items():
            begin, end = _find(lines, before), _find(lines, after)
            if peer == rank or begin is None or end is None:
                continue
            if begin.seen is not None and end.seen is not None:
                if end.seen >= begin.seen:
                    yield peer, end.seen - begin.seen
            elif end.t >= begin.t and not self._moves(peer, begin.t, end.t):
                yield peer, end.t - begin.t

    def _moves(self, rank: int, begin: float, end: float) -> bool:
        """Return whether a rank was moving between two times of its clock: a guest does not notice its stun."""
        offset = self.offset(rank)
        return any(rank in group.ranks for group in self._timeline.moving(begin + offset, end + offset))


def _find(steps: Lines, step: int) -> Line | None:
    index = bisect_left(steps.step, step)
    return steps[index] if index < len(steps) and steps.step[index] == step else None
