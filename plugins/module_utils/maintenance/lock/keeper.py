"""Renews the locks of this run and keeps its session during one long call, such as a boot or an image."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta

from ...errors import CollectionError
from ...vsphere.faults import CONNECTION_ERRORS
from ...vsphere.host_clocks import server_time
from ...vsphere.properties import find_all
from ...vsphere.sdk import vim, vmodl
from ...vsphere.session import Session
from . import holder, lock_rules
from .folders import PREFIX, LockFolders

# Most calls end sooner and need no renewal.
FIRST_SECONDS = 5.0
# The number of checks while a lock lasts: if one renewal fails, the next one still comes in time.
TIMES = 4
# vCenter ends a session of its SOAP API after 30 minutes without a call, also while a task of the REST API runs:
# https://williamlam.com/2022/10/vsphere-session-timeout-overview.html
MOST_SECONDS = 600.0
NAME = "renews the lock"


@contextmanager
def renewing(session: Session) -> Iterator[None]:
    """Renew the locks of this module's run, if any, and keep its session while the block runs."""
    process = holder.running()
    if process is None:
        yield
        return
    ended = threading.Event()
    keeping = threading.Thread(target=_keep, args=(session, process, ended), name=NAME, daemon=True)
    keeping.start()
    try:
        yield
    finally:
        ended.set()
        keeping.join()


def _keep(session: Session, process: lock_rules.RunProcess, ended: threading.Event) -> None:
    pause = FIRST_SECONDS
    while not ended.wait(pause):
        # A failed renewal may succeed at the next try; otherwise, the call itself fails in the same way and reports it.
        with suppress(CollectionError, vmodl.MethodFault, *CONNECTION_ERRORS):
            shortest = renew(session, process)
            pause = MOST_SECONDS if shortest is None else min(shortest / TIMES, MOST_SECONDS)


def renew(session: Session, process: lock_rules.RunProcess) -> int | None:
    """Renew all locks that the run of a process holds; return the shortest duration in seconds, None without locks."""
    all_folders = find_all(session, vim.Folder, ("name", "parent"))
    now = server_time(session).replace(microsecond=0)
    times = []
    for _ref, values in all_folders:
        if values["name"].startswith(PREFIX):
            key = values["name"].removeprefix(PREFIX)
            times.append(_renewed(LockFolders(session, key, values["parent"], key), process, now))
    return min((seconds for seconds in times if seconds), default=None)


def _renewed(folders: LockFolders, process: lock_rules.RunProcess, now: datetime) -> int:
    """Return the seconds for which the lock is held from now on; 0 unless this run holds it."""
    state = folders.read()
    record = state.record
    if record is None or record.free or record.process != process:
        return 0
    left = (record.until - now).total_seconds()
    if left < lock_rules.FRESH * record.seconds:
        folders.write(state, replace(record, until=now + timedelta(seconds=record.seconds)), now)
    return record.seconds
