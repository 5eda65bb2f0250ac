"""A renewal of the lock while a user requests something, or another controller wins."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.maintenance.lock import cluster_lock
from plugins.module_utils.maintenance.lock.folders import LockState
from plugins.module_utils.maintenance.lock.lock_rules import LockRecord, LockRequest
from tests.unit.plugins.module_utils.maintenance.lock.test_lock_rules import ALICE, BOB, NOW, record

# It has been held for half of its time, so that the next call renews it.
HELD = replace(record(ALICE, left=3600), note="1of4")


class Folders:
    """The record of a lock in vCenter, which another controller changes before the next write."""

    def __init__(self, then: LockRecord) -> None:
        self.record, self.number, self.then, self.writes = HELD, 1, [then], 0

    def read(self) -> Any:
        return SimpleNamespace(number=self.number, record=self.record, unreadable=False)

    def write(self, state: LockState, record: LockRecord, _now: datetime) -> bool:
        self.writes += 1
        if self.then:
            self.record, self.number = self.then.pop(), self.number + 1
        if state.number != self.number:
            return False
        self.record, self.number = record, self.number + 1
        return True


def renewed(monkeypatch: pytest.MonkeyPatch, folders: Folders, state: str = "held") -> LockRecord:
    """Renew or release the lock of a window, and return the record in vCenter."""
    monkeypatch.setattr(cluster_lock, "find_cluster", lambda *_options: (SimpleNamespace(_moId="c1"), {"parent": None}))
    monkeypatch.setattr(cluster_lock, "LockFolders", lambda *_options: folders)
    monkeypatch.setattr(cluster_lock, "_now", lambda _session: NOW)
    desired = LockRequest(HELD.owner, HELD.run, 7200, note="2of4")
    session: Any = SimpleNamespace(params={}, server="vcenter.lab", uuid="1")
    lock = cluster_lock.ClusterLock(session, "gpu", state, desired)
    lock.apply(lock.plan(lock.read()))
    return folders.record


def test_renewal_keeps_a_request_of_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = Folders(replace(HELD, request="pause", requester="bob@desk"))

    found = renewed(monkeypatch, folders)

    assert (found.run, found.note, found.until) == (HELD.run, "2of4", NOW + timedelta(seconds=7200))
    assert (found.request, found.requester, folders.writes) == ("pause", "bob@desk", 2)


def test_release_at_the_moment_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert renewed(monkeypatch, Folders(replace(HELD, request="end", requester="bob@desk")), "free").free


def test_renewal_loses_to_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = Folders(record(BOB, left=7200))

    with pytest.raises(Refused, match="gpu: could not take its lock: it now belongs to bob"):
        renewed(monkeypatch, folders)
    assert folders.writes == 1
