"""The moves of a verdict: moves that are judged as one, the move that explains a silence, and the report on each."""

from __future__ import annotations

import math
from typing import Any

import pytest

from plugins.module_utils.continuity.move_windows import (
    Timeline,
    before_and_after,
    external_text,
    faults,
    is_external,
    moved,
    ranks_of,
)

Move = dict[str, Any]


def gone(started: Any, completed: Any, **more: Any) -> Move:
    return {"worker": "w1", "ranks": [1], "ok": True, "started": started, "completed": completed, **more}


def groups(*moves: Move, deadline: float = 5.0) -> list[tuple[tuple[int, ...], set[int], float, float, float]]:
    return [
        (one.moves, set(one.ranks), one.started, one.completed, one.ends) for one in Timeline(moves, deadline).groups
    ]


def test_orders_moves_by_time_and_separates_adjacent_ones() -> None:
    assert groups(gone(30, 40), gone(10, 20, ranks=[2]), gone(40, 50, ranks=[3])) == [
        ((1,), {2}, 10, 20, 25), ((0,), {1}, 30, 40, 45), ((2,), {3}, 40, 50, 55),
    ]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [((10, 50), (20, 30)), ((10, 30), (20, 50))])
def test_overlapping_moves_form_one_group(first: Any, second: Any) -> None:
    assert groups(gone(*first), gone(*second, ranks=[2]), gone(50, 60, ranks=[3])) == [
        ((0, 1), {1, 2}, 10, 50, 55), ((2,), {3}, 50, 60, 65),
    ]  # fmt: skip


def test_moves_requested_together_form_one_group() -> None:
    first, second = gone(10, 20, wave=1), gone(21, 30, ranks=[2], wave=1)
    assert groups(first, second, gone(40, 50, wave=2)) == [((0, 1), {1, 2}, 10, 30, 35), ((2,), {1}, 40, 50, 55)]
    assert groups(gone(None, None, wave=1), second) == [((1,), {2}, 21, 30, 35)]
    assert groups(gone(10, 20, wave="odd"), gone(21, 30, wave="odd")) == groups(gone(10, 20), gone(21, 30))


def test_a_move_that_never_started_has_no_window() -> None:
    assert groups(gone(None, None), gone(10, None), gone("soon", 20)) == [((1,), {1}, 10, math.inf, math.inf)]
    assert [one.is_over for one in Timeline([gone(10, 20), gone(30, None)], 5).groups] == [True, False]
    assert groups(gone(10, 8)) == [((0,), {1}, 10, 10, 15)]


@pytest.mark.parametrize(
    ("begin", "end", "is_touched", "is_moving"),
    [
        (0, 30, False, False),
        (0, 31, True, True),
        (39, 60, True, True),
        (40, 60, True, False),
        (44, 60, True, False),
        (45, 60, False, False),
    ],
)
def test_a_silence_must_overlap_more_than_a_moment(begin: float, end: float, is_touched: bool, is_moving: bool) -> None:
    line = Timeline([gone(30, 40)], 5)
    assert (line.touched(begin, end), line.moving(begin, end)) == (
        line.groups if is_touched else [],
        line.groups if is_moving else [],
    )


@pytest.mark.parametrize(
    ("moves", "deadline", "silence", "owner"),
    [
        ([(30, 40)], 5, (0, 10), None),
        ([(30, 40)], 5, (41, 50), 0),
        ([(0, 10), (20, 25)], 20, (12, 24), 1),
        ([(0, 10), (12, 14)], 20, (15, 33), 1),
        ([(0, 10), (12, 14)], 20, (15, 20), 0),
        ([(0, 10), (19.5, 20.2)], 20, (11, 20), 1),
        ([(0, 10), (12, 20)], 1, (8, 14), 0),
        ([(0, 10), (12, 40)], 20, (9, 13.5), 1),
        ([(0, 10), (12, 40)], 20, (6, 14), 0),
        ([(0, 10), (12, 13), (14, 16)], 20, (9.5, 30), 2),
    ],
)
def test_a_silence_belongs_to_the_most_overlapped_move(
    moves: list[tuple[float, float]], deadline: float, silence: tuple[float, float], owner: int | None
) -> None:
    found = Timeline([gone(*one) for one in moves], deadline).owner(*silence)
    assert (found.moves if found else None) == (None if owner is None else (owner,))


def test_gives_the_neighbours_of_each_group() -> None:
    line = Timeline([gone(10, 20), gone(30, 40), gone(50, 60)], 5)
    assert [(before, one.moves, after) for before, one, after in line.around()] == [
        (-math.inf, (0,), 30), (20, (1,), 50), (40, (2,), math.inf),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"by": "eve"}, "moved by others: eve moved w1 from esx1 to esx5; this test did not start that"),
        (
            {"ok": False},
            "moved by others: an unknown user failed to move w1 from esx1 to esx5; this test did not start that",
        ),
        (
            {"ok": None, "completed": None},
            "moved by others: an unknown user began to move w1 from esx1 to esx5; this test did not start that",
        ),
    ],
)
def test_describes_a_move_started_by_another_user(more: Move, text: str) -> None:
    move = {**gone(1, 2, external=True, source="esx1", target="esx5"), **more}
    assert is_external(move) and not is_external(gone(1, 2))
    assert external_text(move) == text


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (gone(10, 20), []),
        (gone(10, 10), []),
        (gone(None, None, ok=False), []),
        (gone(None, None, ok=None), []),
        (gone(10, None), ["has not ended"]),
        (gone(10, 8.5), ["ends 1.500 s before it starts"]),
        (gone(None, 20), ["succeeded, but its start time is unknown"]),
        (gone(10, 20, ok="true"), ["has ok 'true', which is neither true nor false"]),
        (gone(None, None, ok="true"), ["has ok 'true', which is neither true nor false"]),
    ],
)
def test_names_what_keeps_a_move_from_being_judged(move: Move, expected: list[str]) -> None:
    assert list(faults([gone(1, 2), move])) == [f"moves: move 2 (w1) {each}" for each in expected]
    del move["worker"]
    assert list(faults([move, gone(1, 2)])) == [f"moves: move 1 (worker unknown) {each}" for each in expected]


def test_an_unjudgeable_move_does_not_hide_later_ones() -> None:
    result = list(faults([gone(None, None, ok=False), gone(10, None)]))
    assert result == ["moves: move 2 (w1) has not ended"]


@pytest.mark.parametrize(
    ("move", "evidence", "expected"),
    [
        (gone(10, 20), None, True),
        (gone(10, 20), {"hot_migration": True, "host": {"before": "esx1", "after": "esx5"}}, True),
        (gone(10, 20), {"hot_migration": False, "host": {"before": "esx1", "after": "esx5"}}, False),
        (gone(10, 20), {"host": {"before": "esx1", "after": "esx1"}}, False),
        (gone(10, 20), {"host": {"before": None, "after": None}}, True),
        (gone(10, 20), {"host": "esx1"}, True),
        (gone(10, 20, ok=1), None, False),
        (gone(None, 20), None, False),
        (gone(10, math.inf), None, False),
    ],
)
def test_a_move_counts_unless_facts_contradict_it(move: Move, evidence: Any, expected: bool) -> None:
    assert moved([move], [evidence]) == [expected]


def test_reads_only_numeric_ranks() -> None:
    assert ranks_of({"ranks": [0, 2, "x", None, math.inf]}) == {0, 2}
    assert ranks_of({"ranks": "12"}) == ranks_of({}) == frozenset()
    assert ranks_of({"ranks": (3,)}) == {3}


def test_splits_an_observation_into_before_and_after() -> None:
    assert before_and_after({"before": 1, "after": 2}) == (1, 2)
    assert before_and_after({"after": 2}) == (None, 2)
    assert before_and_after("rdma") == (None, None)
