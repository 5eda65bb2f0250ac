"""The identity of a job: ranks that changed, are foreign, came later, are missing, or report only part of it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.clock import tracks_of
from plugins.module_utils.continuity.job_identity import (
    absent_ranks,
    identity_breaches,
    one_sided,
    ranks_text,
    unseen_identity,
)
from plugins.module_utils.continuity.move_windows import Timeline
from plugins.module_utils.continuity.step_records import Track, read_lines

NO_MOVES = Timeline([], 20)


def records_of(rank: int, *lines: dict[str, Any], first: float = 0.0, **always: Any) -> list[dict[str, Any]]:
    """Return the records of a rank, one each second."""
    return [
        {"rank": rank, "step": step, "t": first + step, "seen": first + step, **always, **line}
        for step, line in enumerate(lines)
    ]


def tracks(*records: list[dict[str, Any]]) -> list[Track]:
    return tracks_of(read_lines([one for some in records for one in some]).ranks, NO_MOVES)[0]


def breaches(
    found: list[Track], timeline: Timeline = NO_MOVES
) -> list[tuple[int | None, int | None, float | None, str]]:
    result = list(identity_breaches(found, timeline, 20.0))
    assert {one.kind for one in result} <= {"identity"}
    return [(one.rank, one.step, one.at, one.detail) for one in result]


def test_names_each_changed_part_once() -> None:
    made = records_of(3, {"pid": 7, "host": "a"}, {}, {"pid": 8, "host": "b"}, {"pid": 8, "host": "b"}, {})
    assert breaches(tracks(made)) == [(3, 2, 2.0, "rank 3: host a became b, pid 7 became 8")]


def test_missing_and_equivalent_values_are_not_changes() -> None:
    assert breaches(tracks(records_of(0, {"pid": 7}, {"pid": None}, {"pid": "7"}, {"host": "a"}))) == []


def test_compares_a_value_with_the_last_reported() -> None:
    assert breaches(tracks(records_of(0, {"pid": 7}, {"host": "a"}, {"pid": 8}))) == [
        (0, 2, 2.0, "rank 0: pid 7 became 8")
    ]


def test_finds_a_change_after_identical_lines() -> None:
    assert breaches(tracks(records_of(0, {}, {}, {"pid": 7}, {"pid": 7}, {"pid": 8}))) == [
        (0, 4, 4.0, "rank 0: pid 7 became 8")
    ]


def test_two_processes_that_alternate_are_reported_once() -> None:
    made = records_of(0, {"pid": 7}, {"pid": 8}, {"pid": 7}, {"pid": 8})
    assert [detail for *_where, detail in breaches(tracks(made))] == ["rank 0: pid 7 became 8"]


@pytest.mark.parametrize("key", ["job", "generation", "size"])
def test_compares_shared_values_with_the_first_rank_reporting(key: str) -> None:
    made = [
        records_of(0, {}),
        records_of(1, {}, {key: 9}),
        records_of(2, {key: 9}),
        records_of(3, {}, {key: 8}),
        records_of(4, {}),
    ]
    assert breaches(tracks(*made)) == [(3, 1, 1.0, f"rank 3 has {key} 8, rank 1 has 9: not one job")]


def test_rejects_a_rank_beyond_the_size() -> None:
    made = [records_of(rank, {}, size=2) for rank in range(3)]
    assert breaches(tracks(*made)) == [(2, 0, 0.0, "rank 2 does not belong to a job of 2 ranks")]


@pytest.mark.parametrize(("late", "is_reported"), [(20.0, False), (20.5, True)])
def test_without_a_size_ranks_must_meet_the_deadline(late: float, is_reported: bool) -> None:
    made = [records_of(0, *[{}] * 30), records_of(1, {}, first=late)]
    reported = [(1, 0, late, f"rank 1 first appeared {late:.3f} s after the others")] if is_reported else []
    assert breaches(tracks(*made)) == reported
    assert breaches(tracks(*[[{**one, "size": 2} for one in some] for some in made])) == []


def test_counts_lateness_from_the_first_record() -> None:
    made = tracks(records_of(0, *[{}] * 30, first=100.0), records_of(1, {}, first=125.0))
    assert breaches(made) == [(1, 0, 125.0, "rank 1 first appeared 25.000 s after the others")]


@pytest.mark.parametrize(("late", "is_reported"), [(5.0, False), (5.5, True)])
def test_without_a_size_ranks_must_precede_the_moves(late: float, is_reported: bool) -> None:
    made = tracks(records_of(0, *[{}] * 30), records_of(1, {}, first=late))
    timeline = Timeline([{"worker": "w1", "ranks": [0], "started": 5.0, "completed": 8.0}], 20)
    assert [rank for rank, *_rest in breaches(made, timeline)] == ([1] if is_reported else [])
    before = Timeline([{"worker": "w1", "ranks": [0], "started": 0.0, "completed": 8.0}], 20)
    assert breaches(made, before) == []


def test_lists_the_parts_that_a_rank_never_reported() -> None:
    whole = {"host": "a", "pid": 1, "start": 2, "job": 3, "boot_id": "b", "generation": 0, "size": 3}
    half = {**whole, "pid": None, "job": None}
    found = tracks(records_of(0, whole), records_of(1, half), records_of(2, half, {"pid": 1}))
    assert list(unseen_identity(found)) == [
        "identity: pid is not in the records of rank 1",
        "identity: job is not in the records of ranks 1, 2",
    ]


@pytest.mark.parametrize(
    ("recorded", "size", "moved", "expected"),
    [
        ([0, 1], 2, [1], ""),
        ([0, 1], None, [1], ""),
        ([0], 3, [], "ranks 1, 2"),
        ([0], 1, [4], "rank 4"),
        ([0], 2, [1, 4], "ranks 1, 4"),
        ([0, 4], 2, [4], "rank 1"),
        ([0], None, [0, 2], "rank 2"),
        ([0], -3, [], ""),
        ([0], 21, [], "ranks " + ", ".join(map(str, range(1, 21)))),
        ([0], 22, [], "ranks " + ", ".join(map(str, range(1, 21))) + " and 1 more"),
        ([5, 30], 30, [40], "ranks " + ", ".join(str(one) for one in range(21) if one != 5) + " and 10 more"),
        ([5], None, [], ""),
        ([0], 2, [64], "ranks 1, 64"),
        ([0], 22, [5], "ranks " + ", ".join(map(str, range(1, 21))) + " and 1 more"),
        ([0], 22, [22], "ranks " + ", ".join(map(str, range(1, 21))) + " and 2 more"),
        ([0], 10**9, [], "ranks " + ", ".join(map(str, range(1, 21))) + " and 999999979 more"),
    ],
)
def test_finds_ranks_without_records(recorded: list[int], size: int | None, moved: list[int], expected: str) -> None:
    assert absent_ranks(tracks(*(records_of(rank, {"size": size}) for rank in recorded)), moved) == expected


def test_without_records_only_moved_ranks_count_as_missing() -> None:
    assert (absent_ranks([], []), absent_ranks([], [2, 1])) == ("", "ranks 1, 2")


def test_uses_the_largest_first_size_of_any_rank() -> None:
    assert absent_ranks(tracks(records_of(0, {}), records_of(1, {"size": 3})), []) == "rank 2"
    assert absent_ranks(tracks(records_of(0, {}, {"size": 2}, {"size": 9})), []) == "rank 1"


def sides(began: float, completed: float, *lines: dict[str, Any]) -> list[str]:
    """Return the sentences about a rank that wrote at 0, 1, 2 and so on, around one move."""
    timeline = Timeline([{"worker": "w1", "ranks": [0], "started": began, "completed": completed}], 20)
    return list(one_sided(tracks(records_of(0, *lines)), timeline, ["the move"]))


HERE: dict[str, Any] = {"pid": 1, "start": 2}


@pytest.mark.parametrize(
    ("move", "lines", "expected"),
    [
        ((1.5, 2.5), [HERE, HERE, HERE, HERE], []),
        ((1.5, 2.5), [HERE, HERE, {}, {}], ["pid, start only before the move"]),
        ((1.5, 2.5), [{}, {}, {}, HERE], ["pid, start only after the move"]),
        ((1.5, 2.5), [{}, {}, {"pid": 1}, {}], []),
        ((1.5, 2.5), [{"pid": 1}, {}, {"pid": 1}, {}], ["pid only before the move"]),
        ((1.5, 2.5), [{}, {}, {"pid": 1}, {"pid": 1}], ["pid only after the move"]),
        ((1.0, 2.0), [{}, {"pid": 1}, {}, {}], ["pid only before the move"]),
        ((1.0, 2.0), [{"pid": 1}, {}, {"pid": 1}, {}], []),
        ((1.0, 2.0), [{}, {}, {"pid": 1}, {}], ["pid only after the move"]),
        ((1.0, 2.0), [{}, {"pid": 1}, {"pid": 1}, {}], []),
        ((1.5, 2.5), [{"pid": 1}, {}, {}, {"start": 2}], ["pid only before the move", "start only after the move"]),
        ((0.0, 3.0), [HERE, {}, {}, {}], ["pid, start only before the move"]),
        ((-0.5, 3.0), [HERE, {}, {}, {}], []),
        ((0.0, 3.5), [HERE, {}, {}, {}], []),
    ],
)
def test_lists_values_reported_before_or_after_moves_only(
    move: tuple[float, float], lines: list[dict[str, Any]], expected: list[str]
) -> None:
    assert sides(*move, *lines) == [f"identity: rank 0 reported {each}" for each in expected]


def test_a_move_outside_the_records_hides_no_others() -> None:
    moves = [{"worker": "w1", "ranks": [0], "started": at, "completed": at + 0.5} for at in (-5.0, 1.25)]
    found = tracks(records_of(0, HERE, HERE, {}, {}))
    assert list(one_sided(found, Timeline(moves, 0), ["early", "late"])) == [
        "identity: rank 0 reported pid, start only before late"
    ]


def test_names_ranks_by_number_and_range() -> None:
    assert (ranks_text([4]), ranks_text([0, 7])) == ("rank 4", "ranks 0, 7")
