# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The line of text with the pace of a running job."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.training.live_pace import LivePace


def record(rank: int, step: int, seen: float, **more: Any) -> dict[str, Any]:
    told = {"rank": rank, "size": 2, "step": step, "seen": seen, "host": f"n{rank + 1}", "loss": 0.5}
    return {**told, "images_per_sec": 100.0, **more}


def steps(pace: LivePace, last: int) -> None:
    for step in range(1, last + 1):
        pace.feed([record(1, step, step * 2.0), record(0, step, step * 2.0 + 0.1)])


def test_before_the_first_step() -> None:
    assert LivePace().line() == "no step yet"


def test_a_line_has_all() -> None:
    pace = LivePace(total_steps=30)
    steps(pace, 10)
    assert pace.line() == "step 10 of 30, 200.0 images/s, loss 0.5, 40 s to go, slowest rank 0 on n1"
    assert not pace.is_done
    steps(pace, 30)
    assert pace.is_done


def test_a_rank_behind_is_the_slowest_and_holds_the_step_back() -> None:
    pace = LivePace(total_steps=11)
    steps(pace, 10)
    pace.feed([record(0, 11, 22.0)])
    assert pace.line().startswith("step 10 of 11, ")
    assert pace.line().endswith("slowest rank 1 on n2")
    assert not pace.is_done


def test_a_silent_rank_is_named_and_a_job_is_not_done_without_it() -> None:
    pace = LivePace(total_steps=1)
    pace.feed([record(0, 1, 1.0, loss="nan", images_per_sec=None)])
    assert pace.line() == "step 1 of 1, loss nan, nothing yet from rank 1"
    assert not pace.is_done


def test_a_pause_is_named_until_it_ends() -> None:
    pace = LivePace()
    steps(pace, 2)
    pace.feed([record(0, 2, 5.0, phase="eval", mark="begin")])
    assert ", eval, " in pace.line()
    pace.feed([record(0, 2, 6.0, phase="eval", mark="end")])
    assert "eval" not in pace.line()
    assert pace.last_seen == 6.0
