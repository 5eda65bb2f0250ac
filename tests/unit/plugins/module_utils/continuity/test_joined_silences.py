"""Silences that are joined over ranks, because each rank moved while another one was silent."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.verdict import verdict

from .runs import SEEN, changed, facts, kinds, move, records
from .test_gaps import gaps, records_of

LIMIT = 10


def judged(made: Any, moves: Any, **limits: Any) -> dict[str, Any]:
    return verdict(made, moves, limits, ended="finished", facts=facts(moves))


@pytest.mark.parametrize(
    ("ranks", "moves", "seconds"),
    [
        (2, [move(57, 165, rank=1), move(166, 280, rank=0)], 231),
        (2, [move(57, 165, rank=1), move(165, 280, rank=0)], 231),
        (3, [move(57, 90, rank=1), move(95, 130, rank=0), move(131, 180, rank=2)], 131),
    ],
    ids=["two ranks", "two ranks without a pause between the moves", "three ranks"],
)
def test_a_job_that_stops_during_moves_is_broken(ranks: int, moves: list[dict[str, Any]], seconds: float) -> None:
    made = records(steps=100, ranks=ranks, stall=(50, seconds))

    result = judged(made, moves)

    assert (result["verdict"], kinds(result)) == ("broken", {"gap"})
    (breach,) = result["breaches"]
    assert breach["detail"].startswith("ranks that did not move at the time were silent for ")
    assert "one after another, until step 50 of rank" in breach["detail"]
    assert result["longest_gap_s"] == pytest.approx(seconds + 1, abs=0.05)
    assert judged(made, moves, max_gap_s=seconds + 2)["verdict"] == "continuous"


def test_moves_of_a_job_that_trains_join_nothing() -> None:
    made = records(steps=300, ranks=2)

    result = judged(made, [move(30 + 20 * turn, 45 + 20 * turn, rank=turn % 2) for turn in range(12)], warmup_steps=0)

    assert result["longest_gap_s"] == pytest.approx(1, abs=0.05)


def test_another_ranks_phase_extends_a_joined_silence_limit() -> None:
    made = records(steps=100, ranks=3, stall=(50, 60))
    first = next(record for record in made if record["rank"] == 2)
    marks = [
        {**first, "step": 49, "t": first["t"] + at, "seen": SEEN + at, "phase": "checkpoint", "mark": word}
        for at, word in ((50, "begin"), (90, "end"))
    ]
    moves = [move(60, 75, rank=0), move(77, 95, rank=1)]

    def verdicts(phases: dict[str, float]) -> str:
        return str(judged([*made, *marks], moves, max_gap_s=45, phases=phases)["verdict"])

    assert (verdicts({"checkpoint": 60}), verdicts({"checkpoint": 5})) == ("continuous", "broken")


TIMES = st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True).map(sorted)


@st.composite
def runs(draw: Any) -> tuple[list[list[int]], list[tuple[int, int, list[int]]], int]:
    """Draw the times of the records of two to four ranks, moves that may overlap, and the end of the observation."""
    written = draw(st.lists(TIMES, min_size=2, max_size=4))
    some = st.sets(st.sampled_from(range(len(written))), min_size=1).map(sorted)
    spans = st.lists(st.integers(0, 30), min_size=2, max_size=2).map(sorted)
    in_turn = sorted(draw(st.lists(st.integers(0, 30), max_size=8)))
    moves = [(begin, end, draw(some)) for begin, end in zip(in_turn[::2], in_turn[1::2])]
    moves += [(begin, end, draw(some)) for begin, end in draw(st.lists(spans, max_size=1))]
    return written, moves, draw(st.integers(max(times[-1] for times in written), 30))


def judged_as_one(moves: list[tuple[int, int, list[int]]]) -> list[tuple[int, int, set[int]]]:
    """Return the moves with those that overlap in time as one."""
    joined: list[tuple[int, int, set[int]]] = []
    for begin, end, moved in sorted(moves):
        if joined and begin < joined[-1][1]:
            first, last, others = joined.pop()
            joined.append((first, max(last, end), others | set(moved)))
        else:
            joined.append((begin, end, set(moved)))
    return joined


def longest_by_count(written: list[list[int]], moves: list[tuple[int, int, list[int]]], until: int) -> int:
    """Return the longest silence, counted second by second.

    A rank is counted in a second if it writes nothing in it and does not move. Its count goes on in the next second,
    unless it writes between the two. If it starts to move instead, the count goes on with the ranks that are silent.
    """
    ranks = range(len(written))
    separate = [
        (begin, end, moved) for begin, end, moved in judged_as_one(moves) if moved != set(ranks) and begin < end
    ]

    def is_counted(rank: int, second: int) -> bool:
        is_moving = any(rank in moved and begin <= second < end for begin, end, moved in separate)
        return written[rank][0] <= second < until and not is_moving

    longest, counts = 0, dict.fromkeys(ranks, 0)
    for second in range(31):
        silent = [rank for rank in ranks if second not in written[rank]]
        handed = [
            counts[rank] for rank in silent if any(second == begin and rank in who for begin, _end, who in separate)
        ]
        counts = {
            rank: 1 + (max([counts[rank], *handed]) if rank in silent else 0) if is_counted(rank, second) else 0
            for rank in ranks
        }
        longest = max(longest, *counts.values())
    return longest


@settings(max_examples=1500 if os.environ.get("FULL") else 300, deadline=None)
@given(run=runs())
@example(run=([[0, 30], [0, 30]], [(5, 15, [0]), (15, 25, [1])], 30))
@example(run=([[0, 30], [0, 30]], [(5, 15, [0]), (16, 25, [1])], 30))
@example(run=([[0, 30], [0, 30]], [(5, 5, [0]), (16, 16, [1])], 30))
@example(run=([[0, 30], [0, 30], [0, 30]], [(5, 15, [0]), (14, 20, [1]), (21, 29, [2])], 30))
@example(run=([[0, 4], [0, 4]], [(5, 15, [0]), (16, 25, [1])], 30))
def test_the_longest_silence_matches_a_count_by_second(run: Any) -> None:
    written, moves, until = run
    made = [
        {"rank": rank, "step": step, "t": at, "seen": at}
        for rank, times in enumerate(written)
        for step, at in enumerate(times)
    ]
    moved = [
        {"worker": "w", "ranks": ranks, "started": begin, "completed": end, "ok": True} for begin, end, ranks in moves
    ]
    limits = {"max_gap_s": LIMIT, "resume_deadline_s": 1000}

    result = verdict(made, moved, limits, ended="running", facts={"observed_until": until})

    expected = longest_by_count(written, moves, until)
    assert (result["longest_gap_s"] or 0) == expected
    over = [*(one for one in result["breaches"] if one["kind"] == "gap"), *result["unattributed"]]
    assert bool(over) is (expected > LIMIT)


def test_measuring_time_grows_linearly_with_the_moves() -> None:
    def seconds(count: int) -> float:
        moves = [(8 * turn + 1, 8 * turn + 7, [turn % 2]) for turn in range(count)]
        started = time.process_time()
        (longest,) = gaps(records_of(0, 0, 8 * count), records_of(1, 0, 8 * count), moves=moves).too_long
        assert longest.seconds == 8 * count
        return time.process_time() - started

    assert seconds(20_000) < 60 * max(seconds(2000), 0.02)


def test_a_rank_beyond_the_reported_size_is_broken() -> None:
    made = changed(records(steps=60, ranks=3), lambda record: record["rank"] < 2, size=2)
    made = changed(made, lambda record: record["rank"] == 2, size=None)

    result = judged(made, [move(25, 28)])

    assert (result["verdict"], kinds(result)) == ("broken", {"identity"})
    assert [one["detail"] for one in result["breaches"]] == ["rank 2 does not belong to a job of 2 ranks"]
