"""A long call renews the locks of the run that makes it, and no others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Failed
from plugins.module_utils.maintenance.lock import holder, keeper, lock_rules
from plugins.module_utils.maintenance.lock.folders import PREFIX, LockState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OURS = lock_rules.RunProcess("ctl01", "boot", "1", 7, 99)
RECORD = lock_rules.LockRecord("alice", "run-a", NOW, NOW + timedelta(seconds=60), OURS, seconds=600)
OTHERS = replace(RECORD, process=replace(OURS, pid=8))


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, lock_rules.LockRecord]]:
    """Locks by cluster, and a server on which the keeper finds them."""

    def store(**records: lock_rules.LockRecord) -> dict[str, lock_rules.LockRecord]:
        class Folders:
            def __init__(self, _session: Any, _cluster: str, _parent: Any, key: str) -> None:
                self.key = key

            def read(self) -> Any:
                return SimpleNamespace(record=records[self.key])

            def write(self, _seen: LockState, record: lock_rules.LockRecord, _now: datetime) -> bool:
                records[self.key] = record
                return True

        found = [(None, {"name": f"{PREFIX}{key}", "parent": None}) for key in records]
        monkeypatch.setattr(keeper, "find_all", lambda *_args: [*found, (None, {"name": "vm", "parent": None})])
        monkeypatch.setattr(keeper, "server_time", lambda _session: NOW)
        monkeypatch.setattr(keeper, "LockFolders", Folders)
        return records

    return store


def renew() -> int | None:
    session: Any = None
    return keeper.renew(session, OURS)


def test_renews_its_lock_for_the_original_duration(stored: Callable[..., dict[str, lock_rules.LockRecord]]) -> None:
    records = stored(c1=RECORD)
    assert renew() == 600
    assert records["c1"] == replace(RECORD, until=NOW + timedelta(seconds=600))


@pytest.mark.parametrize("record", [OTHERS, replace(RECORD, free=True), replace(RECORD, process=None)])
def test_no_other_lock_is_touched(
    stored: Callable[..., dict[str, lock_rules.LockRecord]], record: lock_rules.LockRecord
) -> None:
    records = stored(c1=record)
    assert renew() is None
    assert records["c1"] is record


def test_leaves_fresh_locks_and_returns_the_shortest_time(
    stored: Callable[..., dict[str, lock_rules.LockRecord]],
) -> None:
    fresh = replace(RECORD, until=NOW + timedelta(seconds=590))
    short = replace(RECORD, seconds=60, until=NOW + timedelta(seconds=59))
    records = stored(c1=fresh, c2=short)
    assert renew() == 60
    assert records["c1"] is fresh and records["c2"] is short


def test_retries_failures_until_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, enough = list[int](), threading.Event()

    def failing(_session: Any, _process: Any) -> int:
        tries.append(1)
        if len(tries) == 3:
            enough.set()
        raise Failed("gpu", "renew its lock", "the server said SystemError")

    monkeypatch.setattr(keeper, "renew", failing)
    monkeypatch.setattr(keeper, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(holder, "running", lambda: OURS)
    session: Any = None
    with keeper.renewing(session):
        assert enough.wait(30)
    done = len(tries)
    assert not [one for one in threading.enumerate() if one.name == keeper.NAME] and done >= 3


@pytest.mark.parametrize("shortest", [None, 7200])
def test_calls_often_enough_to_keep_the_session(monkeypatch: pytest.MonkeyPatch, shortest: int | None) -> None:
    class Ended:
        """Ends after three calls; ``pauses`` are the times between them."""

        def __init__(self) -> None:
            self.pauses = list[float]()

        def wait(self, pause: float) -> bool:
            self.pauses.append(pause)
            return len(self.pauses) > 3

    monkeypatch.setattr(keeper, "renew", lambda _session, _process: shortest)
    ended: Any = Ended()
    session: Any = None
    keeper._keep(session, OURS, ended)
    assert len(ended.pauses) == 4 and max(ended.pauses) <= 900, "vCenter ends a session after 1800 idle seconds"
