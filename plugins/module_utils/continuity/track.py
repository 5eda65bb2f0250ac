# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The lines of one rank on the observer's clock."""

from __future__ import annotations

from .lines import Lines
from .step_records import split_steps, typical_interval


class Track:
    """One rank: its lines by time, its steps by number, the steps that it made again, and its usual pace."""

    def __init__(self, rank: int, written: Lines) -> None:
        self.rank, self.lines = rank, written
        self.steps, self.repeated = split_steps(written.ordered(written.step))
        self.times, self.interval = written.at, typical_interval(written.at)
        self.first, self.last = written[0], written[-1]
        self.first_step: int | None = self.steps.step[0] if self.steps else None
        self.last_step: int | None = self.steps.step[-1] if self.steps else None
        self.kinds, self.count, self.stamps = written.used(), len(written), written.stamps
