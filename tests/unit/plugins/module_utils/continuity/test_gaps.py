"""Single silences: their begin and end, phase, limit and move, and the silences that count as one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from plugins.module_utils.continuity.clock import tracks_of
from plugins.module_utils.continuity.gaps import Gap, Gaps, Judge, find_gaps, gap_breaches, phase_between
from plugins.module_utils.continuity.limits import read_limits
from plugins.module_utils.continuity.lines import Line
from plugins.module_utils.continuity.marked_phases import MarkedPhases
from plugins.module_utils.continuity.move_windows import Timeline
from plugins.module_utils.continuity.step_records import read_lines

Record = dict[str, Any]


def records_of(rank: int, *lines: Any, **always: Any) -> list[Record]:
    """Return records of a rank: a step at each moment, or the values given with the moment."""
    pairs = [line if isinstance(line, tuple) else (line, {}) for line in lines]
    return [
        {"rank": rank, "step": step, "t": at, "seen": at, **always, **more} for step, (at, more) in enumerate(pairs)
    ]


def going(*spans: tuple[float, float, list[int]]) -> list[Record]:
    return [{"worker": "w", "ranks": ranks, "started": start, "completed": end} for start, end, ranks in spans]


def gaps(*records: list[Record], moves: Any = (), until: float | None = None, first: int = 0, **limits: Any) -> Gaps:
    timeline, given = Timeline(going(*moves), 5), read_limits({"max_gap_s": 10, **limits})
    reading = read_lines([one for some in records for one in some])
    tracks, _set = tracks_of(reading.ranks, timeline)
    judge = Judge(timeline, given, frozenset(track.rank for track in tracks), first, MarkedPhases(tracks, given))
    return find_gaps(tracks, judge, until)


def shown(gap: Gap) -> tuple[int, int, float, float, str, float]:
    return gap.rank, gap.step, gap.begin, gap.end, gap.phase, gap.limit


def longest(found: Gaps) -> dict[str, tuple[int, float, float]]:
    return {phase: (gap.rank, gap.begin, gap.end) for phase, gap in found.by_phase.items()}


def test_keeps_the_first_longest_silence_of_each_phase() -> None:
    found = gaps(records_of(0, 0, 1, 4, 5), records_of(1, 0, 2, 5, (6, {"phase": "eval"})))
    assert longest(found) == {"train": (0, 1, 4), "eval": (1, 5, 6)}
    assert (found.by_group, found.too_long) == ({}, [])
    gap = found.by_phase["train"]
    assert (shown(gap), gap.seconds, gap.group) == ((0, 2, 1, 4, "train", 10), 3, None)


def test_keeps_the_first_longest_silence_of_each_move() -> None:
    moves = [(1, 2, [9]), (20, 21, [9])]
    found = gaps(
        records_of(0, 0, 3, 4, 19, 22, 23), records_of(1, 0, 3, 19, 21, 23), records_of(2, 40, 90), moves=moves
    )
    assert [(group.moves, gap.rank, gap.begin, gap.end) for group, gap in found.by_group.items()] == [
        ((0,), 1, 3, 19), ((1,), 0, 19, 22),
    ]  # fmt: skip


def test_a_silence_up_to_its_limit_is_allowed() -> None:
    assert gaps(records_of(0, 0, 10)).too_long == []
    assert [shown(gap) for gap in gaps(records_of(0, 0, 10.5)).too_long] == [(0, 1, 0, 10.5, "train", 10)]


def test_silences_of_the_warm_up_are_not_measured() -> None:
    made = records_of(0, 0, 50, 90, 120, 121)
    assert longest(gaps(made, first=3)) == {"train": (0, 90, 120)}
    assert longest(gaps(made, first=2)) == {"train": (0, 50, 90)}


@pytest.mark.parametrize(
    ("ranks", "stalls"),
    [
        ([(0, 20), (5, 30)], [(1, 5, 30)]),
        ([(0, 25), (5, 30)], [(0, 0, 25)]),
        ([(0, 20), (20, 40)], [(0, 0, 20), (1, 20, 40)]),
        ([(30, 50), (0, 20)], [(1, 0, 20), (0, 30, 50)]),
        ([(0, 40), (5, 20), (30, 50)], [(0, 0, 40)]),
        ([(0, 20), (40, 60), (45, 80)], [(0, 0, 20), (2, 45, 80)]),
        ([(0, 20), (10, 25), (22, 60)], [(2, 22, 60)]),
    ],
)
def test_reports_the_longest_of_simultaneous_silences(ranks: Any, stalls: Any) -> None:
    found = gaps(*(records_of(rank, *span) for rank, span in enumerate(ranks)))
    assert [(gap.rank, gap.begin, gap.end) for gap in found.too_long] == stalls


def test_silences_inside_and_outside_a_move_count_separately() -> None:
    found = gaps(records_of(0, 0, 20), records_of(1, 15, 40), moves=[(1, 2, [9])])
    assert [(gap.rank, gap.group is not None) for gap in found.too_long] == [(0, True), (1, False)]


@pytest.mark.parametrize(
    ("moves", "measured"),
    [
        ([(20, 30, [0])], (30, 60)),
        ([(40, 50, [0])], (0, 40)),
        ([(5, 12, [0]), (20, 50, [0])], (50, 60)),
        ([(5, 10, [0]), (40, 50, [0])], (10, 40)),
        ([(20, 30, [1])], (0, 60)),
        ([(20, 30, [0, 1])], (0, 60)),
    ],
)
def test_measures_silence_on_unmoved_ranks_where_possible(moves: Any, measured: Any) -> None:
    found = gaps(records_of(0, 0, 60), records_of(1, 0), moves=moves)
    assert longest(found) == {"train": (0, *measured)}


def test_names_the_ranks_used_to_measure_silence() -> None:
    moves = Timeline(going((1, 2, [0]), (3, 4, [0, 1])), 5)
    judge = Judge(moves, read_limits({}), frozenset({0, 1}), 0, MarkedPhases([], read_limits({})))
    assert [judge.source(group) for group in moves.groups] == ["others", "moved_only"]


@pytest.mark.parametrize(("begin", "measured"), [(30, {"train": (0, 30, 30)}), (30.5, {})])
def test_records_written_during_a_move_end_a_silence(begin: float, measured: Any) -> None:
    moves = [(30, 40, [0])]
    assert longest(gaps(records_of(0, begin, 31), records_of(1, 0), moves=moves)) == measured
    assert longest(gaps(records_of(0, begin), records_of(1, 90), moves=moves, until=31)) == measured


@pytest.mark.parametrize(
    ("until", "measured"),
    [(None, (0, 1, 0, 1, "train", 10)), (2, (0, 1, 0, 1, "train", 10)), (14, (0, 7, 2, 14, "train", 10))],
)
def test_a_current_silence_is_measured_up_to_now(until: float | None, measured: Any) -> None:
    found = gaps(records_of(0, 0, 1, 2, stride=5), until=until)
    assert shown(found.by_phase["train"]) == measured


@pytest.mark.parametrize(("until", "measured"), [(2, {"train": (0, 2, 2)}), (1, {})])
def test_no_rank_is_silent_before_the_last_record(until: float, measured: Any) -> None:
    assert longest(gaps(records_of(0, 2), until=until)) == measured


def test_unstamped_ranks_are_not_measured_up_to_now() -> None:
    made = records_of(0, 0, 1, 2)
    assert longest(gaps([{**one, "seen": None} for one in made], until=90)) == {"train": (0, 0, 1)}
    assert longest(gaps([{**made[0], "seen": None}, *made[1:]], until=90)) == {"train": (0, 2, 90)}


def test_an_ongoing_silence_counts_for_the_overlapping_move() -> None:
    (gap,) = gaps(records_of(0, 0, 1), records_of(1, 0, 1), moves=[(5, 6, [9])], until=30).by_group.values()
    assert (gap.rank, gap.begin, gap.end) == (0, 1, 30)


@pytest.mark.parametrize(
    ("last", "phase", "limit"),
    [
        ({"phase": "eval"}, "eval", 50),
        ({"phase": "eval", "mark": "begin"}, "eval", 50),
        ({"phase": "eval", "mark": "end"}, "train", 10),
        ({}, "train", 10),
    ],
)
def test_a_silent_rank_keeps_its_last_phase(last: Any, phase: str, limit: float) -> None:
    found = gaps(records_of(0, 0, (1, last)), until=90, phases={"eval": 50})
    gap = max(found.by_phase.values(), key=lambda one: one.end)
    # A phase that has started excuses the silence for as long as the phase may last, and no longer.
    assert (gap.phase, gap.limit, gap.begin, gap.end) == (phase, limit, 1, 90)


@pytest.mark.parametrize(("end", "phase", "limit"), [(8, "train", 16), (9, "checkpoint", 17)])
def test_a_phase_of_another_rank_extends_the_limit(end: float, phase: str, limit: float) -> None:
    marks = [(2, {"phase": "checkpoint", "mark": "begin"}), (end, {"phase": "checkpoint", "mark": "end"})]
    for until in (None, 13):
        lines = (1, 13) if until is None else (1,)
        found = gaps(records_of(0, *lines), records_of(1, *marks, 13), phases={"checkpoint": 50}, until=until)
        assert [gap.limit for gap in found.by_phase.values() if (gap.rank, gap.begin, gap.phase) == (0, 1, phase)] == [
            limit
        ]


def line(phase: str, mark: str | None = None) -> Line:
    return Line(1, 0.0, None, 0.0, 1, phase, mark, {})


@pytest.mark.parametrize(
    ("before", "after", "phase", "limit"),
    [
        (("train",), ("train",), "train", 10),
        (("train",), ("eval",), "eval", 50),
        (("eval",), ("train",), "eval", 50),
        (("train",), ("short",), "short", 10),
        (("short",), ("short",), "short", 3),
        (("eval", "begin"), ("eval", "end"), "eval", 50),
        (("short", "begin"), ("eval", "begin"), "short", 3),
        (("eval", "end"), ("short", "end"), "short", 3),
        (("train",), ("short", "end"), "short", 3),
        (("short", "begin"), ("train",), "short", 3),
        (("eval", "end"), ("train",), "train", 10),
        (("train",), ("eval", "begin"), "train", 10),
        (("eval", "end"), ("short", "begin"), "train", 10),
        (("eval", "end"), ("short",), "short", 3),
    ],
)
def test_describes_what_a_rank_does_between_two_lines(before: Any, after: Any, phase: str, limit: float) -> None:
    limits = read_limits({"max_gap_s": 10, "phases": {"eval": 50, "short": 3}})
    assert phase_between(line(*before), line(*after), limits) == (phase, limit)


def test_reports_the_first_of_two_phases_by_name() -> None:
    limits = read_limits({})
    for one, other in combinations(["checkpoint", "compile", "data", "eval", "input", "profile"], 2):
        assert phase_between(line(other), line(one), limits)[0] == one


def test_with_moves_only_their_silences_are_breaches() -> None:
    found = gaps(records_of(0, 0, 20, 100), moves=[(1, 2, [9])])
    text = "rank 0 was silent for 20.000 s before step 1, in phase train (limit 10 s)"
    assert [(one.kind, one.rank, one.step, one.at, one.detail) for one in gap_breaches(found, True)] == [
        ("gap", 0, 1, 0, text)
    ]
    assert [one.step for one in gap_breaches(found, False)] == [1, 2]
    within = Gap(0, 1, 0.0, 10.0, 10.0, "train", 10.0, None)
    assert within.sentence() == "rank 0 was silent for 10.000 s before step 1, in phase train"


def mark(at: float, word: str, phase: str = "eval") -> tuple[float, Record]:
    return at, {"phase": phase, "mark": word}


@pytest.mark.parametrize(
    ("marks", "within", "expected"),
    [
        ([[mark(2, "begin"), mark(8, "end")]], (0, 9), (6, "eval")),
        ([[mark(2, "begin"), mark(8, "end")]], (3, 5), (2, "eval")),
        ([[mark(2, "begin"), mark(8, "end")]], (8, 10), (0, "")),
        ([[mark(2, "begin"), mark(8, "end")]], (0, 2), (0, "")),
        ([[mark(2, "begin"), mark(80, "end")]], (0, 90), (50, "eval")),
        ([[mark(2, "begin")]], (0, 90), (50, "eval")),
        ([[mark(2, "begin"), mark(4, "begin"), mark(8, "end")]], (0, 90), (6, "eval")),
        ([[mark(2, "end"), mark(4, "end")]], (0, 90), (0, "")),
        ([[mark(2, "begin"), mark(4, "end"), mark(6, "begin"), mark(9, "end")]], (0, 90), (5, "eval")),
        ([[mark(2, "begin"), mark(3, "begin", "io"), mark(5, "end"), mark(9, "end", "io")]], (0, 90), (7, "io")),
        ([[mark(2, "begin"), mark(8, "end")], [mark(4, "begin", "io"), mark(9, "end", "io")]], (0, 90), (7, "eval")),
        ([[mark(2, "begin"), mark(8, "end")], [mark(4, "begin", "io"), mark(8, "end", "io")]], (0, 90), (6, "eval")),
        ([[mark(6, "begin"), mark(8, "end")], [mark(1, "begin", "io"), mark(2, "end", "io")]], (0, 90), (3, "eval")),
    ],
)
def test_finds_the_marked_time_and_its_dominant_phase(marks: Any, within: Any, expected: Any) -> None:
    reading = read_lines([one for rank, lines in enumerate(marks) for one in records_of(rank, *lines)])
    tracks, _set = tracks_of(reading.ranks, Timeline([], 5))
    limits = read_limits({"phases": {"eval": 50, "io": 50}})
    assert MarkedPhases(tracks, limits).within(*within) == expected
