"""The continuity verdict: every breach, both sides of its limit, and harmless events."""

from __future__ import annotations

import random
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict

from .runs import SEEN, changed, facts, kinds, move, records


def judge(made: list[dict[str, Any]], moves: list[dict[str, Any]] | None = None, **limits: Any) -> dict[str, Any]:
    moves = [move(30, 40)] if moves is None else moves
    return verdict(made, moves, {"resume_deadline_s": 20, **limits}, ended="running", facts=facts(moves))


def test_a_job_that_runs_on_is_continuous() -> None:
    result = judge(records(stall=(35, 30.0)), [move(30, 70)])
    assert (result["verdict"], result["moved"], result["breaches"], result["unproven"]) == ("continuous", "all", [], [])
    assert result["longest_gap_s"] == pytest.approx(31.0)
    assert result["longest_gap"]["step"] == 35
    assert result["source"] == "others"


def test_reports_gap_throughput_and_steps_of_each_move() -> None:
    made = changed(records(), lambda r: 31 <= r["step"] <= 39, images_per_sec=100.0)
    reported = judge(made)["moves"][0]
    # The observer's clock takes precedence over the times in the steps.
    assert reported["throughput"].pop("unit") == "images/s"
    assert reported["throughput"] == pytest.approx({"before": 340.0, "during": 340.0, "after": 340.0})
    assert reported["steps"] == {"before": 30, "during": 10, "after": 60}
    assert reported["gap_s"] == pytest.approx(1.0, abs=0.025)
    assert (reported["worker"], reported["source"], reported["moved"], reported["judged_with"]) == (
        "w1",
        "others",
        True,
        [0],
    )
    assert reported["resumed_s"] == pytest.approx(0.035)


@pytest.mark.parametrize("key", ["host", "pid", "start", "job", "boot_id", "generation", "size"])
@pytest.mark.parametrize("rank", [None, 2])
def test_another_identity_is_another_job(key: str, rank: int | None) -> None:
    made = changed(records(), lambda r: r["step"] >= 50 and rank in (None, r["rank"]), **{key: 990_001})
    result = judge(made)
    assert result["verdict"] == "broken"
    assert kinds(result) == {"identity"}
    assert {b["rank"] for b in result["breaches"]} == ({0, 1, 2, 3} if rank is None else {rank})
    first = result["breaches"][0]
    assert first["step"] == 50
    assert first["at"] == pytest.approx(SEEN + 50, abs=0.1)
    assert f"{key} " in first["detail"]


@pytest.mark.parametrize("key", ["job", "generation", "size"])
def test_ranks_of_two_jobs_are_not_one_job(key: str) -> None:
    assert kinds(judge(changed(records(), lambda r: r["rank"] == 3, **{key: 9}))) == {"identity"}


@pytest.mark.parametrize(("size", "step"), [(4, 0), (None, 50)])
def test_a_rank_too_many_changes_the_rank_set(size: int | None, step: int) -> None:
    grown = [r for r in records(ranks=5) if r["rank"] < 4 or r["step"] >= step]
    result = judge(changed(grown, lambda r: True, size=size))
    assert kinds(result) == {"identity"}
    assert {b["rank"] for b in result["breaches"]} == {4}


def test_a_job_that_was_restarted_is_broken_though_its_steps_go_on() -> None:
    assert kinds(judge(changed(records(), lambda r: r["step"] >= 50, pid=7, start=9, job="425263105"))) == {"identity"}


def test_a_job_restarted_from_a_checkpoint_repeats_steps() -> None:
    again = [{**r, "step": r["step"] - 10 if r["step"] >= 50 else r["step"]} for r in records()]
    result = judge(again)
    assert kinds(result) == {"step_repeated"}
    assert [b["step"] for b in result["breaches"]] == [40] * 4
    assert "steps 40 to 49" in result["breaches"][0]["detail"]


@pytest.mark.parametrize("gone", [{60}, {60, 61}])
def test_a_lost_step_breaks(gone: set[int]) -> None:
    result = judge([r for r in records() if r["rank"] != 2 or r["step"] not in gone])
    assert [(b["kind"], b["rank"], b["step"]) for b in result["breaches"]] == [("step_lost", 2, 60)]


def test_a_stride_loses_no_step_between_records() -> None:
    strided = changed([r for r in records(400) if r["step"] % 10 == 0], lambda r: True, stride=10)
    assert judge(strided, [move(100, 120)])["verdict"] == "continuous"
    assert kinds(judge([r for r in strided if r["step"] != 200 or r["rank"]], [move(100, 120)])) == {"step_lost"}


def test_a_step_at_another_time_is_repeated() -> None:
    made = records()
    twice = next(r for r in made if r["step"] == 60 and r["rank"] == 2)
    result = judge([*made, {**twice, "t": twice["t"] + 0.2, "seen": twice["seen"] + 0.2}])
    assert [(b["kind"], b["rank"], b["step"]) for b in result["breaches"]] == [("step_repeated", 2, 60)]


def test_records_equal_in_every_key_count_once_in_any_order() -> None:
    made = changed(records(), lambda r: r["step"] == 7, loss=float("nan"))
    doubled = made + [dict(r, loss=float("nan")) if r["step"] == 7 else dict(r) for r in made]
    random.Random(1).shuffle(doubled)
    assert judge(doubled) == judge(made)
    assert judge(made)["verdict"] == "continuous"


def test_a_record_that_was_read_twice_counts_once() -> None:
    made = records()
    assert judge([*made, *({**r, "seen": r["seen"] + 55} for r in made if r["step"] < 45)])["verdict"] == "continuous"


def test_a_step_made_before_its_predecessor_goes_back() -> None:
    swap = {60: 61, 61: 60}
    made = [{**r, "step": swap.get(r["step"], r["step"]) if r["rank"] == 2 else r["step"]} for r in records()]
    result = judge(made)
    assert [(b["kind"], b["rank"], b["step"]) for b in result["breaches"]] == [("step_back", 2, 60)]
    unseen = [{key: value for key, value in r.items() if key != "seen"} for r in made]
    assert kinds(judge(unseen, [])) == {"step_back"}


@pytest.mark.parametrize("ended", ["running", "finished"])
def test_a_rank_that_stops_while_others_go_on_breaks(ended: str) -> None:
    made = [r for r in records() if r["rank"] != 2 or r["step"] < 70]
    result = verdict(made, [], {}, ended=ended, require=())
    assert [(b["kind"], b["rank"], b["step"]) for b in result["breaches"]] == [("rank_stopped", 2, 69)]


@pytest.mark.parametrize(
    ("ended", "ahead", "expected"),
    [
        ("running", 19, set()),
        ("running", 20, {"rank_stopped"}),
        ("finished", 3, set()),
        ("finished", 4, {"rank_stopped"}),
    ],
)
def test_a_rank_may_lag_behind_the_others_a_little(ended: str, ahead: int, expected: set[str]) -> None:
    made = [r for r in records() if r["rank"] != 2 or r["step"] < 100 - ahead]
    assert kinds(verdict(made, [], {}, ended=ended, require=())) == expected
    quick = [{**r, "seen": SEEN + (r["seen"] - SEEN) / 30} for r in made]  # the missing records may still arrive
    assert kinds(verdict(quick, [], {}, ended=ended, require=())) == (expected if ended == "finished" else set())


@pytest.mark.parametrize("ended", ["running", "finished"])
@pytest.mark.parametrize(("behind", "expected"), [(2, set()), (4, {"rank_stopped"})])
def test_a_rank_may_lag_by_whole_strides(ended: str, behind: int, expected: set[str]) -> None:
    strided = changed([r for r in records(1000) if r["step"] % 50 == 0], lambda r: True, stride=50)
    made = [r for r in strided if r["rank"] != 2 or r["step"] < 50 * (20 - behind)]
    assert kinds(verdict(made, [], {}, ended=ended, require=())) == expected


def test_a_worker_on_its_way_has_not_stopped() -> None:
    made = [r for r in records() if r["rank"] != 1 or r["step"] < 50]
    assert kinds(judge(made, [{**move(45, 60), "completed": None}])) == set()
    assert kinds(judge(made, [{**move(45, 60, rank=0), "completed": None}])) == {"rank_stopped"}


@pytest.mark.parametrize(("listened", "expected"), [(119.0, set()), (121.0, {"rank_stopped", "gap"})])
def test_without_a_move_a_silent_job_has_the_limit_of_a_gap(listened: float, expected: set[str]) -> None:
    received = {"observed_until": SEEN + 99 + listened}
    result = verdict(records(), [], {"resume_deadline_s": 20}, ended="running", facts=received, require=())
    assert kinds(result) == expected
    assert kinds(verdict(records(), [], {}, ended="finished", facts=received, require=())) == set()


@pytest.mark.parametrize(("listened", "expected"), [(19.0, set()), (22.0, {"rank_stopped"})])
def test_a_silent_job_has_the_resume_deadline(listened: float, expected: set[str]) -> None:
    made, moves = [r for r in records() if r["step"] <= 35], [move(30, 40)]
    received = {**facts(moves), "observed_until": moves[0]["completed"] + listened}
    result = verdict(made, moves, {"resume_deadline_s": 20}, ended="running", facts=received)
    assert kinds(result) == expected
    assert result["verdict"] == ("broken" if expected else "inconclusive")
    assert len(result["breaches"]) == (4 if expected else 0)


@pytest.mark.parametrize(("stall", "expected"), [(23.0, set()), (25.5, {"resumed_late"})])
def test_a_rank_that_goes_on_after_the_deadline_breaks(stall: float, expected: set[str]) -> None:
    assert kinds(judge(records(stall=(36, stall)))) == expected


@pytest.mark.parametrize(
    ("stall", "limit", "expected"), [(49.0, 50.5, set()), (49.6, 50.5, {"gap"}), (119.1, None, {"gap"})]
)
def test_a_gap_over_the_limit_breaks_within_the_window(stall: float, limit: float | None, expected: set[str]) -> None:
    moves = [move(30, 40 + stall)]
    result = judge(records(stall=(35, stall)), moves, max_gap_s=limit)
    assert kinds(result) == expected
    assert result["longest_gap_s"] == pytest.approx(stall + 1)
    assert len(result["breaches"]) == len(expected)  # one stall of four ranks is reported once


@pytest.mark.parametrize(
    ("step", "then"), [(70, "inconclusive"), (71, "broken"), (230, "broken"), (231, "inconclusive")]
)
def test_the_window_is_from_the_start_to_the_resume_deadline(step: int, then: str) -> None:
    """The window is [200.5, 230]; the silence begins a second before the step and ends 130 s after it."""
    started = 200.5
    result = judge(records(300, ranks=2, stall=(step, 130.0)), [move(started, 210, rank=1)])
    assert result["verdict"] == then
    assert [(gap["rank"], gap["step"], gap["phase"]) for gap in result["unattributed"]] == (
        [(0, step, "train")] if then == "inconclusive" else []
    )
    assert any(u.startswith("unattributed: rank 0 ") for u in result["unproven"]) == (then == "inconclusive")


def test_the_limit_of_training_may_be_given_with_those_of_the_phases() -> None:
    made = records(stall=(50, 40.0))
    assert kinds(judge(made, [], max_gap_s={"train": 30, "eval": 600})) == {"gap"}
    assert kinds(judge(changed(made, lambda r: r["step"] == 50, phase="input"), [], max_gap_s={"train": 30})) == {"gap"}
    assert kinds(judge(made, [], max_gap_s={"eval": 30})) == set()


def test_without_moves_a_gap_breaks_anywhere() -> None:
    assert kinds(judge(records(stall=(50, 130.0)), [])) == {"gap"}
    assert judge(records(stall=(50, 110.0)), [])["verdict"] == "continuous"


def test_a_job_that_died_is_broken() -> None:
    result = verdict(records(), [], {}, ended="died", require=())
    assert (result["verdict"], kinds(result)) == ("broken", {"died"})
    assert verdict([], [], {}, ended="died")["verdict"] == "broken"


@pytest.mark.parametrize("bad", ["nan", "NaN", "inf", "-inf", "Infinity", float("nan"), float("inf"), float("-inf")])
def test_a_loss_that_stays_not_finite_breaks(bad: Any) -> None:
    result = judge(changed(records(), lambda r: r["rank"] == 3 and r["step"] >= 70, loss=bad))
    assert [(b["kind"], b["rank"], b["step"]) for b in result["breaches"]] == [("loss", 3, 70)]
    assert judge(changed(records(), lambda r: 70 <= r["step"] < 80, loss=bad))["verdict"] == "continuous"
    assert judge(changed(records(), lambda r: True, loss=bad))["verdict"] == "continuous"
    assert judge(changed(records(), lambda r: r["step"] >= 70, loss=None))["verdict"] == "continuous"


def test_throughput_below_the_ratio_breaks() -> None:
    slower = changed(records(), lambda r: r["step"] > 40, images_per_sec=250.0)
    assert kinds(judge(slower, min_throughput_ratio=0.75)) == {"throughput"}
    assert kinds(judge(slower, min_throughput_ratio=0.7)) == set()
    assert kinds(judge(slower)) == set()


def test_throughput_lost_bit_by_bit_breaks() -> None:
    slower = changed(records(200), lambda r: r["step"] > 40, images_per_sec=290.0)
    slower = changed(slower, lambda r: r["step"] > 110, images_per_sec=240.0)
    result = judge(slower, [move(30, 40), move(100, 110, rank=2)], min_throughput_ratio=0.8)
    assert {(b["kind"], b["at"]) for b in result["breaches"]} == {("throughput", SEEN + 110)}


def test_an_unsteady_baseline_shows_nothing() -> None:
    made = [{**r, "images_per_sec": 150.0 if r["step"] > 40 else 100.0 + 300 * (r["step"] % 2)} for r in records()]
    result = judge(made, min_throughput_ratio=0.8)
    assert result["verdict"] == "continuous"
    assert [u.split(":")[0] for u in result["unproven"]] == ["throughput"] * 4


def test_an_unknown_ending_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of running, finished, died"):
        verdict([], [], {}, ended="stopped")


def test_without_a_loss_the_loss_is_not_judged() -> None:
    result = judge(changed(records(), lambda _record: True, loss=None))
    assert (result["verdict"], result["unproven"]) == (
        "continuous",
        ["loss: no rank reported one, so it was not judged"],
    )
