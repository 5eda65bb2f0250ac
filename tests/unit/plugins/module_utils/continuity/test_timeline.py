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


def test_moves_come_in_the_order_of_time_and_those_that_only_touch_are_apart() -> None:
    assert groups(gone(30, 40), gone(10, 20, ranks=[2]), gone(40, 50, ranks=[3])) == [
        ((1,), {2}, 10, 20, 25), ((0,), {1}, 30, 40, 45), ((2,), {3}, 40, 50, 55),
    ]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [((10, 50), (20, 30)), ((10, 30), (20, 50))])
def test_moves_that_overlap_are_one_until_the_last_of_them_ends(first: Any, second: Any) -> None:
    assert groups(gone(*first), gone(*second, ranks=[2]), gone(50, 60, ranks=[3])) == [
        ((0, 1), {1, 2}, 10, 50, 55), ((2,), {3}, 50, 60, 65),
    ]  # fmt: skip


def test_moves_that_a_test_requested_at_once_are_one_even_if_the_server_queued_one_of_them() -> None:
    first, second = gone(10, 20, wave=1), gone(21, 30, ranks=[2], wave=1)
    assert groups(first, second, gone(40, 50, wave=2)) == [((0, 1), {1, 2}, 10, 30, 35), ((2,), {1}, 40, 50, 55)]
    assert groups(gone(None, None, wave=1), second) == [((1,), {2}, 21, 30, 35)]
    assert groups(gone(10, 20, wave="odd"), gone(21, 30, wave="odd")) == groups(gone(10, 20), gone(21, 30))


def test_a_move_that_never_began_has_no_window_and_one_under_way_an_open_one() -> None:
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
def test_a_silence_overlaps_a_window_or_a_move_only_for_more_than_a_moment(
    begin: float, end: float, is_touched: bool, is_moving: bool
) -> None:
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
def test_a_silence_is_put_down_to_the_move_that_it_overlaps_most_and_then_to_what_followed_it(
    moves: list[tuple[float, float]], deadline: float, silence: tuple[float, float], owner: int | None
) -> None:
    found = Timeline([gone(*one) for one in moves], deadline).owner(*silence)
    assert (found.moves if found else None) == (None if owner is None else (owner,))


def test_around_each_group_are_the_end_of_the_one_before_and_the_start_of_the_one_after() -> None:
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


def test_a_move_that_cannot_be_judged_hides_none_behind_it() -> None:
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
def test_a_move_took_place_if_its_task_succeeded_and_no_fact_contradicts_it(
    move: Move, evidence: Any, expected: bool
) -> None:
    assert moved([move], [evidence]) == [expected]


def test_ranks_are_read_as_far_as_they_are_numbers() -> None:
    assert ranks_of({"ranks": [0, 2, "x", None, math.inf]}) == {0, 2}
    assert ranks_of({"ranks": "12"}) == ranks_of({}) == frozenset()
    assert ranks_of({"ranks": (3,)}) == {3}


def test_an_observation_has_two_halves() -> None:
    assert before_and_after({"before": 1, "after": 2}) == (1, 2)
    assert before_and_after({"after": 2}) == (None, 2)
    assert before_and_after("rdma") == (None, None)
