"""The clock of a test continues evenly while the clock of the controller is set."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.core import observer_clock
from plugins.module_utils.durable.program_journal import FileJournal, read
from plugins.module_utils.moves.move import clock_offset

HOUR = 3600.0


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 30.0, 0.0])
def test_setting_the_clock_does_not_shift_recorded_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    system, began = time.time, time.time()
    server = SimpleNamespace(timestamp=system)
    monkeypatch.setattr(clock_offset, "server_time", lambda _session: server)
    session: Any = None
    with observer_clock.running(tmp_path), FileJournal(tmp_path / "journal.jsonl", observer_clock.now) as journal:
        monkeypatch.setattr(observer_clock.time, "time", lambda: system() + jump)
        journal.write("begin", True)
        offset = clock_offset.measure(session)
    (entry,) = read(tmp_path / "journal.jsonl")
    assert began - 1 <= entry["at"] <= system() + 1
    moved = offset.on_controller(datetime.fromtimestamp(began, UTC))
    assert moved == pytest.approx(began, abs=1)
    assert observer_clock.now() == pytest.approx(system() + jump, abs=1), (
        "without a test, the time of the system counts"
    )


@pytest.mark.parametrize(("boot", "is_kept"), [("one", True), ("two", False), ("", False)])
def test_next_controller_continues_the_clock_of_a_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, is_kept: bool
) -> None:
    (tmp_path / observer_clock.NAME).write_text(json.dumps({"anchor": 7.0, "boot": "one"}))
    (tmp_path / "boot").write_text(boot)
    monkeypatch.setattr(observer_clock, "BOOT", tmp_path / "boot")
    with observer_clock.running(tmp_path):
        assert (observer_clock.now() == pytest.approx(7.0 + observer_clock.elapsed(), abs=1)) is is_kept


@pytest.mark.parametrize(("clock", "counted"), [(observer_clock.running, HOUR), (observer_clock.awake, 0.0)])
def test_sleep_counts_for_windows_and_not_for_trainings(
    monkeypatch: pytest.MonkeyPatch, clock: Callable[[], AbstractContextManager[None]], counted: float
) -> None:
    """While a laptop sleeps, only one clock of the kernel goes on: without it, a window would miss its end."""
    read, slept = observer_clock.time.clock_gettime, [0.0]
    monkeypatch.setattr(
        observer_clock.time,
        "clock_gettime",
        lambda kind: read(kind) + slept[0] * (kind == observer_clock.time.CLOCK_BOOTTIME),
    )
    with clock():
        began = observer_clock.now()
        slept[0] = HOUR
        assert observer_clock.now() == pytest.approx(began + counted, abs=1)
        assert began == pytest.approx(time.time(), abs=1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"boot": "one", "anchor": "x"}', "nan"])
def test_a_damaged_file_starts_the_clock_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / observer_clock.NAME).write_text(text)
    with observer_clock.running(tmp_path):
        assert observer_clock.now() == pytest.approx(time.time(), abs=1)
