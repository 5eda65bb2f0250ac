"""Clocks: put every line on the observer's clock, and find the moments at which the clock of a rank was set."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate

from .lines import Lines
from .move_windows import Timeline
from .own_clocks import CLOCK_STEP_S, ClockStep, OwnClocks
from .step_records import Track, split_steps

SETTLED_LINES = 5
# In an hour, two clocks may drift apart by a clock step. These spans are too short for drift, and exceed any delay.
LOOK_AROUND_S = 600.0
LOOK_AROUND_LINES = 20
# The least offset is stored for groups of this number of lines.
GROUP = 64


def tracks_of(
    ranks: Mapping[int, Lines], timeline: Timeline, is_stamped: bool = False
) -> tuple[list[Track], list[ClockStep]]:
    """Return the tracks with all lines on one clock, and the moments at which the clock of a rank was set.

    ``is_stamped`` is true if each line has a stamp.
    """
    clocks = OwnClocks({} if is_stamped else {rank: split_steps(lines)[0] for rank, lines in ranks.items()}, timeline)
    tracks, found = [], []
    for rank, lines in ranks.items():
        placed, set_by = _placed(rank, lines, clocks)
        found += set_by
        tracks.append(Track(rank, placed))
    return tracks, found


def _placed(rank: int, lines: Lines, clocks: OwnClocks) -> tuple[Lines, list[ClockStep]]:
    """Return the lines of a rank on the observer's clock, and the times at which the rank's clock was set."""
    steps, repeated = split_steps(lines)
    placed = lines
    if lines.is_stamped:
        set_by = [] if repeated else list(_set_as_seen(rank, steps))
    else:
        is_alone = not (repeated or lines.stamps)
        set_by = list(clocks.clock_steps(rank)) if is_alone else []
        as_written = lines.ordered(lines.t) if repeated else lines
        placed = _put_on_observers_clock(as_written, set_by, clocks.offset(rank))
    # Repeated steps are sorted by number, but happened later.
    return placed.ordered(placed.at) if repeated else _known_by(placed), set_by


def _set_as_seen(rank: int, steps: Lines) -> Iterator[ClockStep]:
    """Yield the clock steps of a rank with stamps on all lines, at which the offset of its clock changes permanently.

    Lines may arrive late but never early, so the least offset of several lines is the true one.
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
    """Return whether there are enough lines between two indexes that did not all arrive at once after a delay."""
    return end - begin >= SETTLED_LINES and abs(steps.at[end - 1] - steps.at[begin]) >= CLOCK_STEP_S


class _Least:
    """The least offset of the lines around an index, found in constant time."""

    def __init__(self, steps: Lines, offsets: array[float]) -> None:
        self._times = array("d", accumulate(steps.at, max))
        self._offsets = offsets
        # Each row contains the minimum over twice as many neighbouring groups as the row before it.
        groups = range(0, len(offsets) - GROUP + 1, GROUP)
        self._rows = [array("d", (min(offsets[begin : begin + GROUP]) for begin in groups))]
        while 2 * (width := 1 << (len(self._rows) - 1)) <= len(self._rows[0]):
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
        first, last = -(-begin // GROUP), end // GROUP
        if first >= last:
            return min(self._offsets[begin:end])
        row = (last - first).bit_length() - 1
        least = min(self._rows[row][first], self._rows[row][last - (1 << row)])
        return min([least, *self._offsets[begin : first * GROUP], *self._offsets[last * GROUP : end]])


def _put_on_observers_clock(lines: Lines, set_by: list[ClockStep], offset: float) -> Lines:
    jumps, jumped = [*reversed(set_by)], 0.0
    placed, received = array("d"), -math.inf
    for line in lines:
        while jumps and line.step >= jumps[-1].step:
            jumped += jumps.pop().seconds
        if line.seen is None:
            # Lines that arrived before this one were written before it, even if the clock was set back.
            placed.append(max(received, line.t + offset - jumped))
        else:
            offset, received = line.seen - line.t, line.seen
            placed.append(line.at)
    return _not_before_known(lines.placed(placed))


def _not_before_known(lines: Lines) -> Lines:
    """Return the lines; place those without a stamp as late as the next one allows: they do not show progress."""
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
    """Return the lines with the latest time at which each was written: its arrival or that of a later line."""
    return lines.placed(array("d", accumulate(reversed(lines.at), min))[::-1])
