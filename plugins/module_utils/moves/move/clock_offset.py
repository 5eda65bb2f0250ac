"""The difference between the clocks of the server and the controller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from ...core import observer_clock
from ...vsphere.host_clocks import server_time
from ...vsphere.session import Session

READINGS = 3
# If two offsets differ by more seconds than this, the clock was set: measurement errors are smaller.
SET_S = 1.0


@dataclass(frozen=True)
class Offset:
    """The server's clock minus the controller's in seconds, and the largest possible error."""

    seconds: float
    error: float

    def on_controller(self, server: datetime) -> float:
        """Return the controller's time for a time of the server, in seconds since the epoch."""
        return server.timestamp() - self.seconds


class TaskTimes(TypedDict):
    """The times of a task on the controller's clock, and the largest errors of these times."""

    started: float
    completed: float | None
    seconds: float | None
    clock_offset_s: float
    clock_error_s: float
    clock_set_s: float


def measure(session: Session) -> Offset:
    """Return the offset from the fastest of several answers, because its error is the smallest."""
    return min((_reading(session) for _number in range(READINGS)), key=lambda reading: reading.error)


def times(began: datetime, ended: datetime | None, before: Offset, after: Offset) -> TaskTimes:
    """Return start and end of a task on the controller's clock, from the offsets before its start and after its end.

    The duration is that of the server's clock, unless this clock was set in between.
    """
    jump = after.seconds - before.seconds
    is_set = abs(jump) > before.error + after.error + SET_S
    started = before.on_controller(began)
    # The task had ended before the second offset was measured, whatever its end time says.
    completed = None if ended is None else min((after if is_set else before).on_controller(ended), observer_clock.now())
    return {
        "started": started,
        "completed": completed,
        "seconds": None if ended is None else (ended - began).total_seconds() - (jump if is_set else 0.0),
        "clock_offset_s": before.seconds,
        "clock_error_s": before.error,
        "clock_set_s": jump if is_set else 0.0,
    }


def _reading(session: Session) -> Offset:
    before = observer_clock.now()
    server = server_time(session).timestamp()
    after = observer_clock.now()
    return Offset(server - (before + after) / 2, (after - before) / 2)
