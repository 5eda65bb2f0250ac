# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lines and tracks written out by hand, for what is asked about some of them only."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.continuity.step_records import Line, Track, split_steps, typical_interval


def line(step: int, at: float, **others: Any) -> Line:
    """A step that was seen when its rank's own clock says that it was made, unless told otherwise."""
    told = {"t": at, "seen": at, "at": at, "stride": 1, "phase": "train", "mark": None, "raw": {}, **others}
    return Line(step=step, **told)


def track(*lines: Line, rank: int = 0) -> Track:
    """What one rank wrote, in the order of time."""
    times = [one.at for one in lines]
    steps, repeated = split_steps(sorted(lines, key=lambda one: one.step))
    return Track(rank, list(lines), times, steps, repeated, typical_interval(times))


def seconds(*steps: int, begin: float = 0.0, rank: int = 0, **others: Any) -> Track:
    """Steps made one each second."""
    return track(*(line(step, begin + index, **others) for index, step in enumerate(steps)), rank=rank)
