"""The time services of hosts, and the offset of their clocks from vCenter's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from .faults import translating_faults
from .inventory import Host
from .sdk import vim
from .session import Session

SERVICES = ("ntpd", "ptpd")
PARALLEL = 16


def clocks(session: Session, hosts: Sequence[Host], *, compare: bool) -> list[dict[str, Any]]:
    """Return the clock of each host; ``compare`` takes one call for each host, and one more."""
    clock = _ServerClock(session) if compare and any(host.reachable for host in hosts) else None
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(partial(_of_host, clock=clock), hosts))


class _ServerClock:
    """The clock of vCenter, which is read once and continued with the monotonic clock of this machine."""

    def __init__(self, session: Session) -> None:
        before = time.monotonic()
        now = server_time(session)
        self._zero = now - timedelta(seconds=(before + time.monotonic()) / 2)

    def offset_of(self, host: Host) -> float:
        """Return the host's clock minus vCenter's in the middle of the call, which cancels the network delay."""
        before = time.monotonic()
        with translating_faults(host.name, "read its clock"):
            there: datetime = host["configManager.dateTimeSystem"].QueryDateTime()
        middle = timedelta(seconds=(before + time.monotonic()) / 2)
        return round((there - self._zero - middle).total_seconds(), 1)


def _of_host(host: Host, clock: _ServerClock | None) -> dict[str, Any]:
    services = {one.key: one for one in host["config.service.service"] or []}
    ntp = getattr(host["config.dateTimeInfo"], "ntpConfig", None)
    return {
        "host": host.name,
        "running": [key for key in SERVICES if key in services and services[key].running],
        "servers": list(getattr(ntp, "server", None) or []),
        "offset_seconds": clock.offset_of(host) if clock and host.reachable else None,
    }


def server_time(session: Session) -> datetime:
    """Return the time of the server, the only clock that all controllers share."""
    with translating_faults(session.server, "read its clock"):
        now: datetime = vim.ServiceInstance("ServiceInstance", session.stub).CurrentTime()
    return now
