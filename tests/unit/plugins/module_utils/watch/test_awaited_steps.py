"""A job that reports no steps is refused early, and not one whose nodes cannot be read."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.trials.steps.opening import first_step_seconds
from plugins.module_utils.watch.awaited_steps import wait_for_steps
from plugins.module_utils.watch.live_pace import AwaitedSteps
from tests.fakes.calling import here


def waited(records: Path, **options: Any) -> str:
    """Return the message of a wait whose watch runs."""
    records.touch()
    with records.open("a") as watch:
        fcntl.flock(watch, fcntl.LOCK_EX)
        return str(here(wait_for_steps, records=str(records), awaited=AwaitedSteps(steps=20, **options))["msg"])


def test_refuses_a_job_without_steps_before_the_timeout(tmp_path: Path) -> None:
    message = waited(tmp_path / "records.jsonl", first=0.3, timeout=30)
    assert "could not make 20 steps on every rank: all its nodes were read, and no rank has reported a step" in message
    assert "record the steps of the script with dml_records" in message


def test_waits_for_steps_of_an_unreadable_node(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl.troubles").write_text('{"w1": "no route"}')
    assert "w1 cannot be read: no route" in waited(tmp_path / "records.jsonl", first=0.3, timeout=0.6)


@pytest.mark.parametrize(("started", "first"), [(None, 600.0), (990.0, 590.0), (100.0, 30.0)])
def test_the_test_waits_less_for_long_running_jobs(started: float | None, first: float) -> None:
    assert first_step_seconds(started, 1000.0) == first


def test_a_wait_ends_early_on_request(tmp_path: Path) -> None:
    (tmp_path / "end").touch()
    (tmp_path / "records.jsonl").touch()
    awaited = AwaitedSteps(20, 60, ended_by=str(tmp_path / "end"))
    result = here(wait_for_steps, records=str(tmp_path / "records.jsonl"), awaited=awaited)
    assert result["asked"] is True and "failed" not in result


def test_a_wait_returns_early_to_check_the_job(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").touch()

    awaited = AwaitedSteps(20, 60, at_most=0.1)
    result = here(wait_for_steps, records=str(tmp_path / "records.jsonl"), awaited=awaited)

    assert result["late"] is True and "failed" not in result
