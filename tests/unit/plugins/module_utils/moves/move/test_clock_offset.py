"""The times of a move on the controller's clock, also if the server's clock is set while the worker moves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plugins.module_utils.core import observer_clock
from plugins.module_utils.moves.move.clock_offset import Offset, times

NOW = 1_790_000_000.0


def server(controller: float, offset: float) -> datetime:
    return datetime.fromtimestamp(controller + offset, UTC)


@pytest.mark.parametrize("before", [0.0, 3600.0, -7200.0])
@pytest.mark.parametrize("jump", [0.0, 0.3, 30.0, -30.0, 3600.0, -3600.0])
def test_move_duration_ignores_changes_of_the_server_clock(
    monkeypatch: pytest.MonkeyPatch, before: float, jump: float
) -> None:
    monkeypatch.setattr(observer_clock, "now", lambda: NOW + 41)
    offsets = Offset(before, 0.01), Offset(before + jump, 0.01)
    found = times(server(NOW, before), server(NOW + 40, before + jump), *offsets)
    assert found["started"] == pytest.approx(NOW)
    assert found["completed"] == pytest.approx(NOW + 40, abs=0.5)
    assert found["seconds"] == pytest.approx(40, abs=0.5)
    assert found["clock_set_s"] == pytest.approx(jump if abs(jump) > 1 else 0.0)


def test_no_move_ends_after_its_end_was_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock was set back between the end of the task and the measurement."""
    monkeypatch.setattr(observer_clock, "now", lambda: NOW + 41)
    found = times(server(NOW, 0), server(NOW + 40, 0), Offset(0, 0.01), Offset(-600, 0.01))
    assert found["completed"] == NOW + 41


def test_unfinished_move_has_no_end() -> None:
    found = times(server(NOW, 0), None, Offset(0, 0.01), Offset(0, 0.01))
    assert (found["completed"], found["seconds"]) == (None, None)
