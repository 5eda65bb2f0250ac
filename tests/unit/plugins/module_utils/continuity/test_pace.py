"""Images per second before, during and after a move: on the observer's clock, over the complete window."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict

STEP_S, IMAGES, RANKS = 0.2, 8, 2
BEGAN, MOVED, LASTED, STALL = 1000.0, 1020.0, 6.1, 3.6
USUAL = IMAGES / STEP_S
MOVE = {"worker": "w1", "ranks": [1], "source": "a", "target": "b", "started": MOVED, "completed": MOVED + LASTED}


def a_run(stall: float = STALL, claimed: float = USUAL, **marks: Any) -> list[dict[str, Any]]:
    """Return steps of 0.2 s; one, in the middle of the move, arrives late, and the clocks of the ranks stand still."""
    found = []
    for step in range(1, 301):
        seen = BEGAN + step * STEP_S
        is_late = seen > MOVED + 1.0
        for rank in range(RANKS):
            reported = {
                "rank": rank,
                "size": RANKS,
                "host": f"w{rank}",
                "pid": 7,
                "step": step,
                "t": seen,
                "seen": seen,
            }
            rate = claimed if MOVED < seen < MOVED + 3.0 else USUAL
            found.append({**reported, "seen": seen + stall * is_late, "images_per_sec": rate, **marks})
    return found


def rates_of(records: list[dict[str, Any]]) -> dict[str, float | None]:
    judged = verdict(records, [{**MOVE, "ok": True}], {"warmup_steps": 5}, ended="running")
    return dict(judged["moves"][0]["throughput"])


def test_a_long_stall_lowers_the_rate_during_moves() -> None:
    rates = rates_of(a_run())
    assert rates["during"] == pytest.approx(USUAL * (LASTED - STALL) / LASTED, rel=0.05)
    assert rates["before"] == pytest.approx(USUAL, rel=0.02)
    assert rates["after"] == pytest.approx(USUAL, rel=0.02)


def test_claimed_step_times_do_not_hide_a_stall() -> None:
    # The rate that a guest measures if its clock stood still and its next step found its batch ready.
    rates = rates_of(a_run(claimed=2 * USUAL))
    assert rates["during"] is not None and rates["before"] is not None
    assert rates["during"] < rates["before"] / 2


def test_a_move_without_stall_keeps_the_usual_rate() -> None:
    assert rates_of(a_run(stall=0.0))["during"] == pytest.approx(USUAL, rel=0.02)


def test_a_silent_job_makes_fewer_images_during_moves() -> None:
    records = [one for one in a_run() if one["seen"] < MOVED + 1.05]
    assert rates_of(records)["during"] == pytest.approx(USUAL * 1.0 / LASTED, rel=0.15)


def test_reports_steps_per_second_without_image_rates() -> None:
    assert rates_of(a_run(images_per_sec=None)) == {
        "unit": "steps/s",
        "before": pytest.approx(5.0),
        "during": pytest.approx(2.05, abs=0.01),
        "after": pytest.approx(5.0),
    }


def test_an_evaluation_during_a_move_is_not_stalled() -> None:
    begin, end = MOVED + 1.0, MOVED + 1.0 + STALL
    mark = {"phase": "evaluate", "step": 105, "images_per_sec": None, "loss": None}
    marks = [
        {"rank": rank, "size": RANKS, "host": f"w{rank}", "pid": 7, "t": at, "seen": at, "mark": kind, **mark}
        for rank in range(RANKS)
        for kind, at in (("begin", begin + 0.01), ("end", end))
    ]
    rates = rates_of([*a_run(), *marks])
    assert rates["during"] == pytest.approx(USUAL, rel=0.15)
