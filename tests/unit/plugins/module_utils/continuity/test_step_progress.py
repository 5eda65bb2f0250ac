"""Progress at its limits: lost or repeated steps, a loss that is no longer finite, and late or stopped ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plugins.module_utils.continuity.limits import read_limits
from plugins.module_utils.continuity.lines import Line
from plugins.module_utils.continuity.marked_phases import MarkedPhases
from plugins.module_utils.continuity.move_windows import Timeline
from plugins.module_utils.continuity.step_progress import (
    Surroundings,
    few_losses,
    late_breaches,
    loss_breaches,
    resumed_after,
    resumed_s,
    step_breaches,
    stopped_breaches,
)
from plugins.module_utils.continuity.step_records import Track

from .lines import line, seconds, track

LIMITS: dict[str, Any] = {"resume_deadline_s": 20, "max_gap_s": 30, "phases": {"eval": 50, "checkpoint": 10}}


def details(one: Track) -> list[tuple[str, int | None, float | None, str]]:
    return [(found.kind, found.step, found.at, found.detail) for found in step_breaches(one)]


def strided(*steps: tuple[int, int]) -> Track:
    return track(*(line(step, float(index), stride=stride) for index, (step, stride) in enumerate(steps)))


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (strided((1, 1), (2, 1), (4, 1)), [("step_lost", 3, 2.0, "rank 0 lost step 3 between steps 2 and 4")]),
        (strided((1, 1), (5, 1)), [("step_lost", 2, 1.0, "rank 0 lost steps 2 to 4 between steps 1 and 5")]),
        (
            strided((0, 5), (5, 5), (20, 5)),
            [("step_lost", 10, 2.0, "rank 0 lost steps 10 to 15 between steps 5 and 20")],
        ),
        (strided((5, 5), (10, 5), (12, 2), (14, 2)), []),
        (strided((5, 2), (7, 2), (12, 5), (17, 5)), []),
        (strided((0, 5), (5, 5)), []),
    ],
)
def test_steps_beyond_the_stride_are_lost(one: Track, expected: list[Any]) -> None:
    assert details(one) == expected


def test_a_step_after_a_later_one_goes_back() -> None:
    one = track(line(1, 1.0), line(3, 2.0), line(2, 3.0), line(4, 4.0))
    assert details(one) == [("step_back", 2, 3.0, "rank 0 made step 2 after step 3")]


def test_repeated_steps_are_reported_as_ranges() -> None:
    again = [
        line(step, 10.0 + step, stride=stride) for step, stride in ((2, 1), (3, 1), (5, 1), (7, 2), (9, 2), (12, 1))
    ]
    first = [line(step, step / 4, stride=5) for step in range(1, 13)]
    one = track(*first, *again, rank=4)
    assert [(found.kind, found.rank, found.step, found.at, found.detail) for found in step_breaches(one)] == [
        ("step_repeated", 4, 2, 12.0, "rank 4 made steps 2 to 3 again"),
        ("step_repeated", 4, 5, 15.0, "rank 4 made steps 5 to 9 again"),
        ("step_repeated", 4, 12, 22.0, "rank 4 made step 12 again"),
    ]


def losses(*values: Any, stride: int = 1, **others: Any) -> Track:
    return track(
        *(line(index * stride, float(index), stride=stride, loss=loss, **others) for index, loss in enumerate(values))
    )


def logged(*values: Any) -> Track:
    """Return steps of which each second one has a loss that was logged a moment later."""
    made = [line(step, float(step)) for step in range(2 * len(values) + 1)]
    marks = [line(2 * at, 2 * at + 0.01, loss=loss, mark="loss") for at, loss in enumerate(values)]
    return track(*sorted((*made, *marks), key=lambda each: each.at))


def test_logged_losses_show_no_progress() -> None:
    one = logged(1.0, 1.0, 1.0)

    assert (one.count, one.interval, one.last.step) == (7, 1.0, 6)
    assert any(kind.loss for kind in one.kinds)


@pytest.mark.parametrize(
    ("one", "lost", "few"),
    [
        (logged(1.0, *["nan"] * 11), ["rank 0 has loss nan at step 2 and no finite one since"], []),
        (logged(1.0, "nan", 1.0), [], []),
        (losses(1.0, *["nan"] * 20), ["rank 0 has loss nan at step 1 and no finite one since"], []),
        (losses(1.0, *["inf"] * 19), [], ["loss: rank 0 has loss inf at step 1 and 18 after it; 20 steps are needed"]),
        (losses(1.0, 1.0, "nan"), [], ["loss: rank 0 has loss nan at its last step, 2; 20 steps are needed"]),
        (losses(1.0, "nan", "nan"), [], ["loss: rank 0 has loss nan at step 1 and 1 after it; 20 steps are needed"]),
        (
            losses(1.0, "nan", None, "nan"),
            [],
            ["loss: rank 0 has loss nan at step 1 and 2 after it; 20 steps are needed"],
        ),
        (losses(1.0, "nan", 1.0), [], []),
        (losses(*["nan"] * 30), [], []),
        (losses(None, phase="eval"), [], []),
        (losses(1.0, *["nan"] * 4, stride=5), ["rank 0 has loss nan at step 5 and no finite one since"], []),
    ],
)
def test_a_loss_is_lost_after_twenty_steps(one: Track, lost: list[str], few: list[str]) -> None:
    assert [(found.kind, found.detail) for found in loss_breaches(one)] == [("loss", reported) for reported in lost]
    assert list(few_losses(one)) == few


def test_a_lost_loss_and_silent_rank_have_times() -> None:
    (lost,) = loss_breaches(losses(1.0, *["nan"] * 20))
    assert (lost.rank, lost.step, lost.at) == (0, 1, 1.0)
    limits, silent = read_limits(LIMITS), seconds(*range(10), rank=3)
    (found,) = stopped_breaches([silent], Surroundings(timeline(), limits, MarkedPhases([], limits)), "running", 100.0)
    assert (found.rank, found.step, found.at) == (3, 9, 9.0)


def test_ignores_the_loss_of_an_evaluation() -> None:
    pause = line(3, 2.5, phase="eval", loss="nan")
    assert list(few_losses(track(*losses(1.0, 1.0).lines, pause))) == []


def timeline(*moves: tuple[float, float | None], ranks: Sequence[int] = (1,)) -> Timeline:
    reported = [{"ranks": list(ranks), "started": started, "completed": completed} for started, completed in moves]
    return Timeline(reported, LIMITS["resume_deadline_s"])


def late(*lines: Line, moves: Timeline, others: Sequence[Track] = ()) -> list[tuple[int | None, float | None, str]]:
    one = track(*lines)
    marked = MarkedPhases([one, *others], read_limits(LIMITS))
    return [(found.step, found.at, found.detail) for found in late_breaches(one, moves, read_limits(LIMITS), marked)]


def test_a_rank_is_late_only_beyond_the_deadline() -> None:
    steps = [line(1, 0.0), line(2, 1.0), line(3, 2.0)]
    moves = timeline((3.0, 5.0))
    assert late(*steps, line(4, 25.0), moves=moves) == []
    assert late(*steps, line(4, 25.5), moves=moves) == [
        (4, 25.5, "rank 0 resumed 20.500 s after the move (deadline 20 s)")
    ]


def test_the_deadline_starts_at_the_last_line_before() -> None:
    """The phase of the silence is that of the pause, not that of the previous step."""
    steps, pause = [line(step, float(step)) for step in range(4)], line(4, 4.0, phase="eval")
    moves = timeline((3.5, 5.0))
    assert late(*steps, pause, line(5, 55.0), moves=moves) == []
    assert [step for step, _at, _reported in late(*steps, pause, line(5, 55.5), moves=moves)] == [5]
    pause_before = steps[3]._replace(phase="eval")
    assert len(late(*steps[:3], pause_before, line(4, 4.0), line(5, 54.0), moves=moves)) == 1


def test_checks_each_move_with_lines_on_both_sides() -> None:
    steps = [line(step, 30.0 + step) for step in range(4)]
    both = timeline((1.0, 2.0), (34.0, 35.0))
    assert [step for step, _at, _reported in late(*steps, line(4, 80.0), moves=both)] == [4]
    assert late(*steps, moves=both) == []


def test_a_silence_spanning_many_moves_stays_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that is silent during thousands of moves would otherwise take the square of their number."""
    moves, limits = timeline(*((2.0 + number, 2.5 + number) for number in range(2000))), read_limits(LIMITS)
    later = [any(other.started > group.started for other in moves.moving(1.0, 2100.0)) for group in moves.groups]
    assert [moves.moves_again(group.started, 1.0, 2100.0) for group in moves.groups] == later
    monkeypatch.setattr(Timeline, "moving", lambda *_times: pytest.fail("it lists moves"))
    silent = track(*(line(step, step / 10) for step in range(11)), line(11, 2100.0))

    breaches = list(late_breaches(silent, moves, limits, MarkedPhases([], limits)))

    assert [breach.kind for breach in breaches] == ["resumed_late"]


def test_judges_lateness_with_one_line_before_a_move() -> None:
    afterwards = [line(step, 80.0 + step) for step in range(1, 5)]
    assert [step for step, _at, _reported in late(line(0, 1.0), *afterwards, moves=timeline((2.0, 3.0)))] == [1]
    assert late(*afterwards, moves=timeline((2.0, 3.0))) == []


def test_a_rank_awaiting_another_move_is_not_late() -> None:
    steps = [line(0, 0.0), line(1, 1.0), line(2, 2.0), line(3, 3.0), line(4, 50.0)]
    assert late(*steps, moves=timeline((3.25, 4.0), (5.0, 40.0))) == []
    assert len(late(*steps, moves=timeline((3.25, 4.0)))) == 1


def test_another_ranks_mark_excuses_a_late_rank() -> None:
    steps = [line(step, float(step)) for step in range(4)]
    marks = track(line(4, 5.0, mark="begin", phase="eval"), line(4, 15.0, mark="end", phase="eval"), rank=1)
    assert late(*steps, line(4, 34.0), moves=timeline((3.5, 4.0)), others=[marks]) == []
    assert len(late(*steps, line(4, 34.5), moves=timeline((3.5, 4.0)), others=[marks])) == 1


def test_always_allows_twice_the_usual_time_between_lines() -> None:
    slow = [line(step, 15.0 * step) for step in range(5)]
    moves = timeline((61.0, 62.0))
    assert late(*slow, line(5, 92.0), moves=moves) == []
    assert len(late(*slow, line(5, 92.5), moves=moves)) == 1


def test_a_move_of_short_deadline_keeps_to_it() -> None:
    one, limits = seconds(1, 2, 3), read_limits({"resume_deadline_s": 0.25})
    quick = track(*(line(step, 0.1 * step) for step in range(4)), line(4, 1.0))
    assert [b.kind for b in late_breaches(quick, timeline((0.31, 0.35)), limits, MarkedPhases([], limits))] == [
        "resumed_late"
    ]
    assert list(late_breaches(one, timeline((0.1, 0.9)), limits, MarkedPhases([], limits))) == []


def test_the_last_rank_to_resume_defines_the_duration() -> None:
    (group,) = groups = timeline((1.0, 2.5)).groups
    each = [resumed_after(one, groups)[group] for one in (seconds(1, 2, 3, 4), seconds(1, 2, 3, 4, begin=0.75))]
    assert resumed_s(each) == 1.25 - 1.0 + 0.25
    assert resumed_s([*each, resumed_after(seconds(1, 2), groups)[group]]) is resumed_s([]) is None


def stopped(
    *tracks: Track, ended: str = "running", until: float | None = None, moves: Timeline | None = None
) -> list[tuple[int | None, int | None, str]]:
    limits = read_limits(LIMITS)
    surroundings = Surroundings(moves or timeline(), limits, MarkedPhases(tracks, limits))
    breaches = list(stopped_breaches(tracks, surroundings, ended, until))
    assert {found.kind for found in breaches} <= {"rank_stopped"}
    return [(found.rank, found.step, found.detail) for found in breaches]


def test_a_finished_job_may_lack_a_few_steps() -> None:
    all_steps, unread = seconds(*range(10)), seconds(*range(7), rank=1)
    assert stopped(all_steps, unread, ended="finished") == []
    result = stopped(all_steps, seconds(*range(8), rank=2), seconds(*range(6), rank=1), ended="finished")
    assert result == [(1, 5, "rank 1 stopped at step 5, 4.000 s ago; others continued to step 9")]


def test_a_finished_strided_job_may_lack_few_records() -> None:
    every_fifth = [line(5 * index, float(index), stride=5) for index in range(10)]
    assert stopped(track(*every_fifth), track(*every_fifth[:7], rank=1), ended="finished") == []
    result = stopped(track(*every_fifth), track(*every_fifth[:6], rank=1), ended="finished")
    assert [rank for rank, _step, _reported in result] == [1]


def test_a_rank_with_only_marks_is_not_behind() -> None:
    marks = track(line(0, 0.0, mark="begin", phase="eval"), line(0, 1.0, mark="end", phase="eval"), rank=1)
    assert stopped(seconds(*range(30)), marks, ended="finished") == []


def test_reports_a_silent_rank_and_the_others_progress() -> None:
    result = stopped(seconds(*range(10)), seconds(*range(9), rank=1), until=100.0)
    assert result == [
        (0, 9, "rank 0 stopped at step 9, 91.000 s ago; so did all others"),
        (1, 8, "rank 1 stopped at step 8, 92.000 s ago; others continued to step 9"),
    ]
    marks = track(line(0, 0.0, mark="begin"), line(0, 1.0, mark="end"))
    assert stopped(marks, until=100.0) == [(0, 0, "rank 0 stopped at step 0, 99.000 s ago; so did all others")]
    assert stopped(until=100.0) == []


def test_a_rank_stops_when_others_are_far_ahead() -> None:
    quick = track(*(line(step, step / 20) for step in range(41)))

    def behind(step: int, at: float) -> Track:
        return track(*(line(one, one / 20) for one in range(step)), line(step, at), rank=1)

    assert [rank for rank, _step, _reported in stopped(quick, behind(20, 1.0))] == [1]
    assert stopped(quick, behind(21, 1.0)) == []
    assert stopped(quick, behind(20, 1.01)) == []
    assert [rank for rank, _step, _reported in stopped(quick, behind(10, 0.5))] == [1]
    assert stopped(quick, behind(10, 1.25)) == []


def test_three_records_outweigh_twenty_steps_with_long_strides() -> None:
    ahead = track(*(line(10 * index, float(index), stride=10) for index in range(10)))

    def behind(records: int) -> Track:
        return track(*(line(10 * index, float(index), stride=10) for index in range(10 - records)), rank=1)

    assert [rank for rank, _step, _reported in stopped(ahead, behind(3))] == [1]
    assert stopped(ahead, behind(2)) == []


def test_a_job_may_be_silent_for_the_limit() -> None:
    assert stopped(seconds(*range(10)), until=39.0) == []
    assert stopped(seconds(*range(10)), until=39.5) == [
        (0, 9, "rank 0 stopped at step 9, 30.500 s ago; so did all others")
    ]
    assert stopped(seconds(*range(10)), until=3.0) == []


def test_a_phase_started_last_has_its_full_limit() -> None:
    pause = [line(9, 9.0, phase="eval")]
    assert stopped(track(*seconds(*range(9)).lines, *pause), until=59.0) == []
    assert len(stopped(track(*seconds(*range(9)).lines, *pause), until=59.5)) == 1


def test_the_deadline_counts_from_the_end_of_moves() -> None:
    silent = seconds(*range(10))
    moves = timeline((9.5, 12.0))
    assert stopped(silent, until=32.0, moves=moves) == []
    assert len(stopped(silent, until=32.5, moves=moves)) == 1
    marking = track(line(9, 14.0, mark="begin", phase="checkpoint"), rank=1)
    waiting = track(*silent.lines, rank=0)
    assert stopped(waiting, marking, until=42.0, moves=moves) == []
    assert [rank for rank, _step, _reported in stopped(waiting, marking, until=42.5, moves=moves)] == [0]


def test_a_rank_being_moved_has_not_stopped() -> None:
    moves = timeline((9.5, None))
    assert stopped(seconds(*range(10), rank=1), until=500.0, moves=moves) == []
    assert stopped(seconds(*range(10), rank=2), until=500.0, moves=moves) == []
    ahead = seconds(*range(60))
    assert [rank for rank, _step, _reported in stopped(ahead, seconds(*range(10), rank=2), moves=moves)] == [2]
    assert stopped(ahead, seconds(*range(10), rank=1), moves=moves) == []


def test_unstamped_ranks_are_not_measured_by_the_clock() -> None:
    unstamped = seconds(*range(10), seen=None)
    assert stopped(unstamped, until=500.0) == []
    one_stamp = track(*seconds(*range(9), seen=None).lines, line(9, 9.0))
    assert len(stopped(one_stamp, until=500.0)) == 1


def test_one_stamp_suffices_to_measure_a_rank() -> None:
    first_only = track(line(0, 0.0), *(line(step, float(step), seen=None) for step in range(1, 10)))
    assert len(stopped(first_only, until=500.0)) == 1
