"""A request to a maintenance window is refused if no run would read it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.maintenance.lock import own_lock
from tests.unit.plugins.module_utils.maintenance.lock.test_lock_rules import ALICE, NOW, record

WINDOW = replace(record(ALICE, left=9), note="1of4")


def lock(found: Any) -> Any:
    """Return a lock with a record."""
    return SimpleNamespace(target="gpu", read=dict, lock_state=SimpleNamespace(record=found), now=NOW)


@pytest.mark.parametrize("action", ["pause", "resume", "end"])
@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "no window runs there"),
        (replace(WINDOW, free=True), "no window runs there"),
        (replace(WINDOW, note=""), "no window runs there"),
        (replace(WINDOW, until=NOW - timedelta(seconds=1)), "it has run out; on ctl01, continue the window with"),
        (WINDOW, ""),
    ],
)
def test_a_request_needs_a_window_at_work(found: Any, reason: str, action: str) -> None:
    desired = own_lock.WindowRequest(lock(found), action)

    if not reason or (action == "resume" and "run out" in reason):
        assert desired.read() == {"request": ""}
    else:
        with pytest.raises(Refused, match=f"gpu: could not ask its maintenance window to {action}: .*{reason}"):
            desired.read()
