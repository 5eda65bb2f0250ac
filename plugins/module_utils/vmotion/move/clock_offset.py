# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The difference between the clocks of the server and the controller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ...vsphere.host_clocks import server_time
from ...vsphere.session import Session
from ..folder import observer_clock

READINGS = 3


@dataclass(frozen=True)
class Offset:
    """The server's clock minus the controller's in seconds, and the largest possible error."""

    seconds: float
    error: float

    def on_controller(self, server: datetime) -> float:
        """Return the controller's time for a time of the server, in seconds since the epoch."""
        return server.timestamp() - self.seconds


def measure(session: Session) -> Offset:
    """Return the offset from the fastest of several answers, which has the smallest error."""
    return min((_reading(session) for _number in range(READINGS)), key=lambda reading: reading.error)


def _reading(session: Session) -> Offset:
    before = observer_clock.now()
    server = server_time(session).timestamp()
    after = observer_clock.now()
    return Offset(server - (before + after) / 2, (after - before) / 2)
