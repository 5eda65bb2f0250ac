"""Curves of jobs of any length, and the rate without the warm-up steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.watch.curve import MOST_POINTS, Curve
from plugins.module_utils.watch.received_record import ReceivedRecord, received_record


def record(step: int, rank: int = 0, rate: Any = 10.0, loss: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"step": step, "rank": rank, "images_per_sec": rate, "loss": loss, "seen": 100.0 + step, **more}


def received(fields: dict[str, Any]) -> ReceivedRecord:
    record = received_record(fields)
    assert record
    return record


def fed(records: list[dict[str, Any]], warmup: int = 0) -> Curve:
    curve = Curve(warmup)
    for one in records:
        curve.feed(received(one))
    return curve


def test_warmup_steps_do_not_count() -> None:
    slow = [record(step, rank, 1.0) for step in range(1, 4) for rank in (0, 1)]
    quick = [record(step, rank, 20.0) for step in range(4, 9) for rank in (0, 1)]
    assert fed(slow + quick, warmup=3).rate() == pytest.approx(40.0)
    assert fed(slow + quick).rate() == pytest.approx(2 * 8 / (3 + 5 / 20))
    assert fed(slow, warmup=9).rate() == pytest.approx(2.0)
    assert Curve().rate() is None


def test_first_steps_are_drawn_without_a_rate() -> None:
    hasty = [record(1, rate=None), record(2, rate=9000.0), *(record(step, rate=20.0) for step in range(3, 9))]
    points = fed(hasty, warmup=2).points()
    assert [one["images_per_sec"] for one in points] == [None, None, *[pytest.approx(20.0)] * 6]
    assert [one["loss"] for one in points] == [1.0] * 8
    assert [one["images_per_sec"] for one in fed(hasty[:2], warmup=9).points()] == [None, pytest.approx(9000.0)]


def test_a_point_that_includes_warmup_has_no_rate() -> None:
    steps = 4 * MOST_POINTS
    points = fed([record(step, rate=9000.0 if step < 4 else 20.0) for step in range(1, steps)], warmup=3).points()
    assert points[0]["images_per_sec"] is None
    assert [one["images_per_sec"] for one in points[1:]] == [pytest.approx(20.0)] * (len(points) - 1)


def test_a_point_sums_rates_and_averages_losses() -> None:
    curve = fed([record(1, 0, None, 2.0), record(1, 1, None, 4.0), record(2, 0, 10.0, "nan"), record(2, 1, 30.0, None)])
    assert curve.points() == [
        {"step": 1, "seconds": 0.0, "images_per_sec": None, "loss": 3.0},
        {"step": 2, "seconds": 1.0, "images_per_sec": pytest.approx(30.0), "loss": None},
    ]


def test_the_last_point_ends_at_the_last_step() -> None:
    points = fed([record(step) for step in range(1, 401)]).points()
    assert (points[0]["step"], points[1]["step"], points[-1]["step"]) == (3, 7, 400)


def test_a_mark_starts_the_clock_without_a_step() -> None:
    curve = fed([record(0, mark="begin", seen=90.0), record(1)])
    assert [(one["step"], one["seconds"]) for one in curve.points()] == [(1, 11.0)]


@given(st.integers(1, 3000), st.integers(1, 3))
def test_memory_is_bounded_and_nothing_is_lost(steps: int, ranks: int) -> None:
    curve = fed([record(step, rank, loss=float(step)) for step in range(1, steps + 1) for rank in range(ranks)])
    points = curve.points()
    assert len(points) <= MOST_POINTS
    numbers = [one["step"] for one in points]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] >= steps
    assert all(one["images_per_sec"] == pytest.approx(10.0 * ranks) for one in points)
    assert [one["loss"] for one in points] == sorted(one["loss"] for one in points)
    assert curve.rate() == pytest.approx(10.0 * ranks)
