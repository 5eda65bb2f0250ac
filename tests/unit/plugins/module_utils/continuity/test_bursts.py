"""Rates on the observer's clock: they do not depend on how many records the observer reads at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.limits import read_limits
from plugins.module_utils.continuity.lines import Line
from plugins.module_utils.continuity.marked_phases import MarkedPhases
from plugins.module_utils.continuity.pace import Pace
from plugins.module_utils.continuity.verdict import read_case, verdict
from plugins.module_utils.training.results.timeline import timeline

from .lines import line, track
from .runs import SEEN, Record, facts, kinds, move, records

ALWAYS = (-math.inf, math.inf)
times = st.lists(st.integers(0, 400).map(lambda tenth: tenth / 10), min_size=2, max_size=80).map(sorted)


def pace(lines: Sequence[Line], marks: Sequence[Line] = ()) -> Pace:
    limits = read_limits({"phases": {"eval": 100}})
    return Pace(track(*lines), 0, MarkedPhases([track(*marks)] if marks else [], limits))


def polled(made: list[Record], seconds: float) -> list[Record]:
    """Return the records as an observer stamps them that reads all records of an interval at its end."""
    return [{**one, "seen": SEEN + seconds * math.ceil((one["seen"] - SEEN) / seconds)} for one in made]


@settings(max_examples=300, deadline=None)
@given(at=times)
def test_counts_the_steps_after_the_first_moment(at: list[float]) -> None:
    """Steps that arrive at one moment count; those of the first moment were made before it."""
    made, seconds = pace([line(step, time) for step, time in enumerate(at)]).made_in(*ALWAYS)
    assert made == pytest.approx(sum(time > at[0] for time in at))
    assert seconds == pytest.approx(at[-1] - at[0])


@settings(max_examples=300, deadline=None)
@given(at=times, cut=st.floats(0, 40), mark=st.tuples(st.floats(0, 40), st.floats(0, 9)), marked=st.booleans())
def test_steps_of_two_spans_add_up_to_all(at: list[float], cut: float, mark: tuple[float, float], marked: bool) -> None:
    begin, length = mark
    marks = [line(0, time, mark=word, phase="eval") for word, time in (("begin", begin), ("end", begin + length))]
    one = pace([line(step, time) for step, time in enumerate(at)], marks if marked else ())
    middle = min(max(cut, at[0]), at[-1])
    first, second, whole = (one.made_in(*span) for span in ((-math.inf, middle), (middle, math.inf), ALWAYS))
    assert first[0] + second[0] == pytest.approx(whole[0], abs=1e-3)
    assert first[1] + second[1] == pytest.approx(whole[1], abs=1e-3)


@settings(max_examples=100, deadline=None)
@given(step_s=st.sampled_from((0.2, 0.28, 0.5, 1.0)), poll_s=st.sampled_from((0.5, 1.0, 2.0, 3.0)))
def test_bursts_change_rates_by_at_most_one_read(step_s: float, poll_s: float) -> None:
    """A job with a step each 0.28 s that is read each second does 3.57 steps/s, and not the steps that came first."""
    at = [poll_s * math.ceil(step * step_s / poll_s) for step in range(1, 301)]
    one = pace([line(step, time) for step, time in enumerate(at, start=1)])
    made, seconds = one.made_in(*ALWAYS)
    assert made / seconds == pytest.approx(1 / step_s, rel=0.05)
    # A stretch has at least five seconds, and its limits may be one read away from the truth.
    assert all(rate == pytest.approx(1 / step_s, rel=poll_s / 5 + 0.01) for rate in one.seen_rates(*ALWAYS))


def test_records_that_arrive_after_a_pause_distort_nothing() -> None:
    at = [*map(float, range(10)), *[60.0] * 51, *map(float, range(61, 70))]
    rates = pace([line(step, time) for step, time in enumerate(at)]).seen_rates(*ALWAYS)
    assert rates == [1.0] * len(rates) and len(rates) == 3


@pytest.mark.parametrize("poll_s", [0.1, 1.0, 2.0])
def test_the_cost_is_independent_of_the_polling_interval(poll_s: float) -> None:
    """The undisturbed rate once was that of the reads: 1.97 instead of 3.59 steps/s."""
    made = [{**one, "seen": SEEN + (one["seen"] - SEEN) * 0.28} for one in records(1000)]
    moves = [move(100, 110)]
    found = verdict(polled(made, poll_s), moves, {}, ended="running", facts=facts(moves))
    assert (found["verdict"], kinds(found)) == ("continuous", set())
    assert found["cost"]["steps_per_s"] == pytest.approx(1 / 0.28, rel=0.02)
    assert found["cost"]["goodput"] == pytest.approx(1, abs=0.02)
    assert (found["cost"]["stalled_s"], found["cost"]["slow_s"]) == (0, 0)


def test_a_checkpoint_within_a_stall_deducts_its_time() -> None:
    made = records(200, stall=(60, 30.0))
    marks = [
        {**made[0], "mark": word, "phase": "checkpoint", "step": 60, "t": at, "seen": SEEN + at}
        for word, at in (("begin", 65.0), ("end", 67.0))
    ]
    moves = [move(55, 90)]
    cost = verdict([*made, *marks], moves, {}, ended="running", facts=facts(moves))["cost"]
    assert cost["stalled_s"] == pytest.approx(28, abs=0.2)


def test_bursts_leave_no_peaks_on_the_page() -> None:
    made = polled(records(240), 8.0)
    shown: dict[str, Any] = timeline(read_case(made, [], {}, ended="running").tracks, [], {}, {})
    assert max(shown["rates"][1:-1]) < 1.3 * min(shown["rates"][1:-1]), shown["rates"]


def stalled(poll_s: float, stall: float) -> list[Record]:
    """Return a job of one step a second that stands still from second 45 on; its nodes cannot be read meanwhile."""
    made = polled(records(200, stall=(45, stall)), poll_s)
    return [
        {**one, "seen": max(one["seen"], SEEN + 120.0) if one["seen"] > SEEN + 44.0 else one["seen"]} for one in made
    ]


@pytest.mark.parametrize("poll_s", [1.0, 10.0])
def test_a_following_stall_does_not_lower_undisturbed_rates(poll_s: float) -> None:
    """The interval between two reads that contains the start of the move was spread over the stall."""
    moves = [move(44, 120)]

    cost = verdict(stalled(poll_s, 75), moves, {}, ended="running", facts=facts(moves))["cost"]

    assert cost["steps_per_s"] == pytest.approx(1.0, rel=0.02)
    assert cost["goodput"] == pytest.approx((200 - 44) / (200 + 75 - 44), abs=0.02)


@pytest.mark.parametrize("poll_s", [1.0, 10.0])
def test_the_image_rate_before_a_move_excludes_stalls(poll_s: float) -> None:
    moves = [move(44, 120)]

    (judged,) = verdict(stalled(poll_s, 75), moves, {}, ended="running", facts=facts(moves))["moves"]

    assert judged["throughput"]["before"] == pytest.approx(340, rel=0.02)


@pytest.mark.parametrize(("reads", "is_known"), [(2, False), (3, True)])
def test_an_undisturbed_rate_needs_three_reads(reads: int, is_known: bool) -> None:
    at = [*[0.0, 10.0, 20.0][3 - reads :], 90.0, 100.0]
    made = [{"rank": 0, "step": step, "t": time, "seen": SEEN + time} for step, time in enumerate(at)]
    moves = [move(25, 30, rank=1)]

    cost = verdict(made, moves, {}, ended="running", facts=facts(moves))["cost"]

    assert (cost is not None) is is_known


@pytest.mark.parametrize("poll_s", [0.1, 1.0])
def test_a_job_that_slows_down_is_not_stalled(poll_s: float) -> None:
    """Thirty steps of four seconds were thirty stalls of three seconds."""
    made = [
        {"rank": rank, "size": 2, "step": step, "t": at, "seen": SEEN + poll_s * math.ceil(at / poll_s)}
        for rank in range(2)
        for step, at in enumerate([*range(100), *range(100, 220, 4), *range(220, 300)])
    ]
    moves = [move(99, 110)]

    cost = verdict(made, moves, {"resume_deadline_s": 120}, ended="running", facts=facts(moves))["cost"]

    assert cost["stalled_s"] == 0
    assert cost["slow_s"] == pytest.approx(120, abs=12)


def test_a_slowed_job_can_still_stall() -> None:
    made = [
        {"rank": 0, "step": step, "t": at, "seen": SEEN + at}
        for step, at in enumerate([*range(100), *range(100, 180, 4), *range(220, 300, 4)])
    ]
    moves = [move(99, 110, rank=1)]

    cost = verdict(made, moves, {"resume_deadline_s": 120}, ended="running", facts=facts(moves))["cost"]

    assert cost["stalled_s"] == pytest.approx(44 - 4, abs=4)


@settings(max_examples=300, deadline=None)
@given(
    reads=st.lists(st.integers(1, 60), min_size=3, max_size=12, unique=True).map(sorted),
    since=st.floats(1, 60),
    late=st.integers(61, 300),
)
def test_the_undisturbed_rate_matches_a_count_between_reads(reads: list[int], since: float, late: int) -> None:
    """A step each second until the move starts, then none; the read after it comes late."""
    made = [second for second in range(1, 61) if second <= since]
    seen = [next((read for read in reads if second <= read <= since), late) for second in made]
    one = pace([line(step, float(time)) for step, time in enumerate(sorted(seen))])

    found = one.undisturbed(-math.inf, since)

    before = [read for read in reads if read <= since]
    if len(before) < 3:
        assert found is None
    else:
        assert found is not None
        assert (found.made, found.seconds, found.reads) == (before[-1] - before[0],) * 2 + (len(before),)
        assert one.made_since(since, late, 1.0)[0] == pytest.approx(0, abs=1)
