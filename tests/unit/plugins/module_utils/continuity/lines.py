# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lines and tracks written out by hand, for what is asked about some of them only."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.continuity.lines import Line, Lines
from plugins.module_utils.continuity.step_records import Track, loss_of, rate_of, split_steps, typical_interval


def line(step: int, at: float, **others: Any) -> Line:
    """Return a step that was seen when its rank's own clock says that it was made; ``others`` are other values."""
    given = {"loss": loss_of(others.pop("loss", None)), "rate": rate_of(others.pop("rate", None))}
    told = {
        "t": at,
        "seen": at,
        "at": at,
        "stride": 1,
        "phase": "train",
        "mark": None,
        "identity": {},
        **given,
        **others,
    }
    return Line(step=step, **told)


def track(*lines: Line, rank: int = 0) -> Track:
    """What one rank wrote, in the order of time."""
    written = Lines.of(lines)
    steps, repeated = split_steps(written.ordered(written.step))
    return Track(rank, written, steps, repeated, typical_interval(written.at))


def seconds(*steps: int, begin: float = 0.0, rank: int = 0, **others: Any) -> Track:
    """Steps made one each second."""
    return track(*(line(step, begin + index, **others) for index, step in enumerate(steps)), rank=rank)
