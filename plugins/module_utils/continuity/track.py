# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The lines of one rank on the observer's clock, compressed until they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .lines import Lines
from .step_records import MOST_UNPACKED, split_steps, typical_interval


class Opened(NamedTuple):
    """The lines of one rank by time, its steps by number, and the steps that it made again."""

    lines: Lines
    steps: Lines
    repeated: Lines


class Shelf:
    """The unpacked lines of the most recently read track, and of others as long as these are few."""

    def __init__(self) -> None:
        self._opened: dict[Track, Opened] = {}
        self._count = 0

    def open(self, track: Track) -> Opened:
        """Return the lines of a track."""
        opened = self._opened.get(track)
        if opened is None:
            self._count += track.count
            while self._opened and self._count > MOST_UNPACKED:
                oldest = next(iter(self._opened))
                del self._opened[oldest]
                self._count -= oldest.count
            opened = self._opened[track] = track.unpacked()
        return opened


class Track:
    """One rank: its usual pace, its first and last lines, and all its lines, which are unpacked when they are read.

    The tracks of one shelf are read one after the other.
    """

    def __init__(self, rank: int, written: Lines, shelf: Shelf) -> None:
        steps = _opened(written).steps
        self.rank, self.interval = rank, typical_interval(written.at)
        self.first, self.last = written[0], written[-1]
        self.first_step: int | None = steps.step[0] if steps else None
        self.last_step: int | None = steps.step[-1] if steps else None
        self.kinds, self.count, self.stamps = written.used(), len(written), written.stamps
        self._shelf, self._packed, self._all_kinds = shelf, written.packed(), written.kinds

    @property
    def lines(self) -> Lines:
        """Return all lines by time."""
        return self._shelf.open(self).lines

    @property
    def steps(self) -> Lines:
        """Return one line for each step, by number."""
        return self._shelf.open(self).steps

    @property
    def repeated(self) -> Lines:
        """Return the other lines of repeated steps."""
        return self._shelf.open(self).repeated

    @property
    def times(self) -> Sequence[float]:
        """Return the times of all lines on the observer's clock."""
        return self.lines.at

    def unpacked(self) -> Opened:
        """Return a new copy of the lines."""
        return _opened(Lines(self._packed.unpacked(), self._all_kinds, self._packed))


def _opened(written: Lines) -> Opened:
    return Opened(written, *split_steps(written.ordered(written.step)))
