"""The pace of a running job: its line of text, the steps since a time, and values that are not finite."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.watch.curve import Curve
from plugins.module_utils.watch.live_pace import LivePace, StepsSince, longest_silence


def record(rank: int, step: int, seen: float, **more: Any) -> dict[str, Any]:
    fields = {"rank": rank, "size": 2, "step": step, "seen": seen, "host": f"n{rank + 1}", "loss": 0.5}
    return {**fields, "images_per_sec": 100.0, **more}


def steps(pace: LivePace, last: int) -> None:
    for step in range(1, last + 1):
        pace.feed([record(1, step, step * 2.0), record(0, step, step * 2.0 + 0.1)])


def test_reports_no_step_before_the_first() -> None:
    assert LivePace().line() == "no step yet"


def test_a_line_contains_every_value() -> None:
    pace = LivePace(total_steps=30)
    steps(pace, 10)
    assert pace.line() == "step 10 of 30, 200.0 images/s, loss 0.5, 40 s to go, slowest rank 0 on n1"
    assert not pace.is_done
    steps(pace, 30)
    assert pace.is_done


@pytest.mark.parametrize("at_once", [1, 4, 10, 30])
def test_the_rate_does_not_depend_on_batched_reads(at_once: int) -> None:
    pace = LivePace()
    for step in range(1, 121):
        pace.feed([record(rank, step, float(-(-step // at_once) * at_once)) for rank in (0, 1)])
    assert pace.summary()["steps_per_sec"] == pytest.approx(1)
    assert [one["steps_per_sec"] for one in pace.ranks()] == pytest.approx([1, 1])


def test_a_job_beyond_the_expected_steps_continues() -> None:
    pace = LivePace(total_steps=40)
    steps(pace, 43)
    assert pace.line() == "step 43, 200.0 images/s, loss 0.5, slowest rank 0 on n1"
    assert (pace.is_done, pace.summary()["seconds_to_go"]) == (False, None)


def test_a_rank_behind_holds_the_step_back() -> None:
    pace = LivePace(total_steps=11)
    steps(pace, 10)
    pace.feed([record(0, 11, 22.0)])
    assert pace.line().startswith("step 10 of 11, ")
    assert pace.line().endswith("slowest rank 1 on n2")
    assert not pace.is_done


def test_names_a_silent_rank_and_waits_for_it() -> None:
    pace = LivePace(total_steps=1)
    pace.feed([record(0, 1, 1.0, loss="nan", images_per_sec=None)])
    assert pace.line() == "step 1 of 1, loss not finite since step 1 on rank 0, nothing yet from rank 1"
    assert not pace.is_done


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ((30, 60, 60), "rank 0 on n1 fell silent first, after step 30, 30 s before any other rank"),
        ((60, 60, 59), ""),
        ((60,), ""),
    ],
)
def test_names_the_rank_that_fell_silent_first(ends: tuple[int, ...], sentence: str) -> None:
    pace = LivePace()
    for step in range(1, 61):
        pace.feed([record(rank, step, float(step)) for rank, end in enumerate(ends) if step <= end])
    assert pace.summary()["first_silent"] == sentence


def test_a_pause_is_named_until_it_ends() -> None:
    pace = LivePace()
    steps(pace, 2)
    pace.feed([record(0, 2, 5.0, phase="eval", mark="begin")])
    assert ", eval, " in pace.line()
    pace.feed([record(0, 2, 6.0, phase="eval", mark="end")])
    assert "eval" not in pace.line()
    assert pace.last_seen == 6.0


def test_reports_the_loss_of_the_first_reporting_rank() -> None:
    pace = LivePace()

    pace.feed([record(1, 1, 1.0, loss=0.7), record(0, 1, 1.1, loss=0.5), record(2, 1, 1.2, loss=0.9)])

    assert pace.summary()["loss"] == 0.5


def test_logged_loss_is_that_of_the_last_step() -> None:
    curve = Curve()
    pace = LivePace(curve=curve)

    pace.feed([record(rank, step, float(step), loss=None) for step in (1, 2) for rank in (0, 1)])
    pace.feed([{**mark(0, 2.1, "loss", "train"), "loss": 0.25}])

    assert (pace.summary()["loss"], pace.step) == (0.25, 2)
    assert [point["loss"] for point in curve.points()] == [None, 0.25]
    pace.feed([{**mark(0, 2.2, "loss", "train"), "loss": "nan"}])
    assert pace.summary()["not_finite"] == "loss not finite since step 2 on rank 0"


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ((1, 1), "ranks 0, 1 of 2 formed no process group, so that each trains a separate model"),
        ((2, 1), ""),
        ((None, None), ""),
    ],
)
def test_names_ranks_without_a_process_group(groups: tuple[int | None, ...], sentence: str) -> None:
    pace = LivePace()

    pace.feed([record(rank, 10, 1.0, group=group) for rank, group in enumerate(groups)])

    assert (pace.summary()["apart"], sentence in pace.line()) == (sentence, True)
    pace.feed([record(rank, 11, 2.0) for rank in (0, 1)])
    assert pace.apart == ""


def mark(rank: int, seen: float, mark: str, phase: str = "checkpoint") -> dict[str, Any]:
    return record(rank, 2, seen, phase=phase, mark=mark)


@pytest.mark.parametrize(
    ("more", "phase"),
    [
        pytest.param([mark(0, 5.0, "begin"), mark(1, 5.0, "begin"), mark(1, 5.1, "end")], "checkpoint", id="one_saves"),
        pytest.param([mark(0, 5.0, "begin"), mark(1, 5.1, "end"), mark(0, 9.0, "end")], "train", id="all_saved"),
        pytest.param([mark(1, 5.0, "begin", "eval"), mark(0, 5.1, "end")], "eval", id="one_evaluates"),
        pytest.param([mark(0, 5.0, "begin"), record(0, 3, 6.0)], "train", id="trains_again_after_a_restart"),
        pytest.param(
            [mark(0, 5.0, "begin", "eval"), mark(0, 5.0, "begin", "input"), mark(0, 5.1, "end", "input")],
            "eval",
            id="nested",
        ),
    ],
)
def test_a_phase_lasts_until_every_rank_leaves(more: list[dict[str, Any]], phase: str) -> None:
    pace = LivePace()
    steps(pace, 2)

    pace.feed(more)

    assert pace.summary()["phase"] == phase
    assert longest_silence(60, pace.phase) == (60 if phase == "train" else 600)


def in_domain(rank: int, step: int, seen: float, **more: Any) -> dict[str, Any]:
    """Return a record of a node whose name has a domain."""
    return record(rank, step, seen, **{"host": f"w{rank}.lab", **more})


def test_counts_later_steps_by_the_slowest_rank() -> None:
    counted = StepsSince(since=10.0)
    counted.feed(in_domain(0, step, 8.0 + step) for step in range(6))
    assert (counted.fewest(), counted.behind(1)) == (0, [1]), "a rank of the job has sent no record"
    counted.feed([in_domain(1, 5, 12.0), in_domain(1, 6, 13.0, stride=3)])
    assert (counted.steps, counted.fewest(), counted.step) == ({0: 4, 1: 4}, 4, 6)
    assert counted.behind(5) == [0, 1]


def test_phases_and_foreign_lines_are_not_steps() -> None:
    counted = StepsSince(since=0.0)
    counted.feed([in_domain(0, 1, 1.0, mark="begin"), {"rank": "x"}, {"rank": 0, "step": 1}])
    assert (counted.size, counted.steps, counted.fewest()) == (0, {}, 0)


def test_finds_ranks_by_the_name_of_their_node() -> None:
    counted = StepsSince(since=0.0)
    counted.feed([in_domain(0, 1, 1.0), in_domain(1, 1, 1.0), in_domain(2, 1, 1.0, host="w1")])
    assert (counted.ranks_on("w1"), counted.ranks_on("w0.other"), counted.ranks_on("w9")) == ([1, 2], [0], [])


def test_optimizer_steps_have_a_rate_and_source() -> None:
    pace = LivePace()
    for step in range(1, 11):
        of = {"by": "optimizer SGD\n", "others": step // 5, "loss": None, "images_per_sec": None}
        pace.feed([record(rank, step, step * 2.0, **of) for rank in (0, 1)])
    assert pace.line() == "step 10, 0.50 steps/s, slowest rank 0 on n1"
    assert pace.summary()["steps_by"] == "optimizer SGD?, the first of 3"
    assert LivePace().summary()["steps_by"] == ""


def step(rank: int, number: int, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "size": 2, "step": number, "seen": float(number), "host": f"n{rank}", **more}


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([step(0, 1, loss=1.0), step(1, 1)], ""),
        (
            [step(0, 41, not_finite=40, checked_every=20), step(1, 41, not_finite=40, checked_every=20)],
            "gradients not finite since step 40 (checked every 20 steps) on ranks 0, 1",
        ),
        ([step(0, 41, not_finite=40)], "gradients not finite since step 40 on rank 0"),
        ([step(0, 37, loss="nan"), step(0, 38, loss="nan")], "loss not finite since step 37 on rank 0"),
        ([step(0, 37, loss="nan"), step(0, 38, loss=0.5)], ""),
        ([step(0, 2, not_finite="x", checked_every=True)], ""),
    ],
)
def test_reports_since_when_values_are_not_finite(records: list[dict[str, Any]], sentence: str) -> None:
    pace = LivePace()

    pace.feed(records)

    assert pace.summary()["not_finite"] == sentence
    assert (sentence in pace.line()) and (bool(sentence) == ("not finite" in pace.line()))
