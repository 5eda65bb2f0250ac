# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The difference between the server's clock and the controller's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from ...vsphere.host_clocks import server_time
from ...vsphere.session import Session

LOOKS = 3


@dataclass(frozen=True)
class Offset:
    """The server's clock minus the controller's in seconds, and the largest possible error."""

    seconds: float
    error: float

    def ours(self, theirs: datetime) -> float:
        """The controller's time for a time of the server, in seconds since the epoch."""
        return theirs.timestamp() - self.seconds


def offset(session: Session) -> Offset:
    """The offset by the fastest of several answers, which has the smallest error."""
    return min((_once(session) for _look in range(LOOKS)), key=lambda one: one.error)


def _once(session: Session) -> Offset:
    before = time.time()
    theirs = server_time(session).timestamp()
    after = time.time()
    return Offset(theirs - (before + after) / 2, (after - before) / 2)
