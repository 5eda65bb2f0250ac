# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The time services of hosts, and the offset of their clocks from vCenter's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from .faults import translating_faults
from .inventory import Host
from .sdk import vim
from .session import Session

SERVICES = ("ntpd", "ptpd")


def clocks(session: Session, hosts: Sequence[Host], *, compare: bool) -> list[dict[str, Any]]:
    """Return the clock of each host; ``compare`` takes three calls for each host."""
    return [_of_host(session, host, compare=compare) for host in hosts]


def _of_host(session: Session, host: Host, *, compare: bool) -> dict[str, Any]:
    services = {one.key: one for one in host["config.service.service"] or []}
    ntp = getattr(host["config.dateTimeInfo"], "ntpConfig", None)
    return {
        "host": host.name,
        "running": [key for key in SERVICES if key in services and services[key].running],
        "servers": list(getattr(ntp, "server", None) or []),
        "offset_seconds": _offset(session, host) if compare and host.reachable else None,
    }


def _offset(session: Session, host: Host) -> float:
    """Return the host's clock minus vCenter's, which is read before and after to cancel the network delay."""
    with translating_faults(host.name, "read its clock"):
        before = server_time(session)
        there: datetime = host["configManager.dateTimeSystem"].QueryDateTime()
        after = server_time(session)
    return round((there - before - (after - before) / 2).total_seconds(), 1)


def server_time(session: Session) -> datetime:
    """Return the time of the server, the only clock that all controllers share."""
    with translating_faults(session.server, "read its clock"):
        now: datetime = vim.ServiceInstance("ServiceInstance", session.stub).CurrentTime()
    return now
