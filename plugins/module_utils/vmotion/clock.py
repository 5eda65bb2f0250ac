# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The server's times on this machine's clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from ..cluster.clocks import server_time
from ..vsphere.session import Session

LOOKS = 3


@dataclass(frozen=True)
class Offset:
    """The server's clock less ours in seconds, and by how much that can be wrong at most."""

    seconds: float
    error: float

    def ours(self, theirs: datetime) -> float:
        """A moment of the server on our clock, in seconds since the epoch."""
        return theirs.timestamp() - self.seconds


def offset(session: Session) -> Offset:
    """Ask some times and take the answer that came fastest: its way there and back leaves the least in doubt."""
    return min((_once(session) for _look in range(LOOKS)), key=lambda one: one.error)


def _once(session: Session) -> Offset:
    before = time.time()
    theirs = server_time(session).timestamp()
    after = time.time()
    return Offset(theirs - (before + after) / 2, (after - before) / 2)
