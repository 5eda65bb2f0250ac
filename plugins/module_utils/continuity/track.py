"""The lines of one rank on the observer's clock."""

from __future__ import annotations

from .limits import LOSS
from .lines import Lines
from .step_records import split_steps, typical_interval


class Track:
    """One rank: its lines by time, its steps by number, the steps that it made again, and its usual pace."""

    def __init__(self, rank: int, written: Lines) -> None:
        self.rank, self.losses = rank, written
        self.lines = written = _without_losses(written)
        self.steps, self.repeated = split_steps(written.ordered(written.step))
        self.times, self.interval = written.at, typical_interval(written.at)
        self.first, self.last = written[0], written[-1]
        self.first_step: int | None = self.steps.step[0] if self.steps else None
        self.last_step: int | None = self.steps.step[-1] if self.steps else None
        self.kinds, self.count, self.stamps = self.losses.used(), len(written), written.stamps


def _without_losses(written: Lines) -> Lines:
    """Return the lines without losses that a framework logged after their steps: they show no progress."""
    if all(kind.mark != LOSS for kind in written.used()):
        return written
    return written.picked([at for at, kind in enumerate(written.kind) if written.kinds[kind].mark != LOSS] or [0])
