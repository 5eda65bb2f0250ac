"""Any records, moves and facts get a verdict, in a time that grows with their number."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.verdict import verdict

from .runs import SEEN, START, Record, facts, kinds, move, records

LIMITS = {"resume_deadline_s": 20, "max_gap_s": 15}


def judge(made: list[Record], moves: list[Record], more: dict[str, Any] | None = None, **limits: Any) -> dict[str, Any]:
    """Return the verdict on a running job with all facts of its moves observed."""
    seen = {**facts(moves), **(more or {})}
    return verdict(made, moves, {**LIMITS, **limits}, ended="running", facts=seen)


def test_an_unstamped_line_does_not_prove_timely_resume() -> None:
    made = records(200, stall=(45, 40.0))
    asleep = [{**one, "t": one["t"] - 40} if one["rank"] == 1 and one["step"] >= 45 else one for one in made]
    moves = [move(42, 46)]
    assert "resumed_late" in kinds(judge(asleep, moves, max_gap_s=100))
    blind = [
        {key: value for key, value in one.items() if key != "seen" or (one["rank"], one["step"]) != (1, 45)}
        for one in asleep
    ]
    late = [one for one in judge(blind, moves, max_gap_s=100)["breaches"] if one["kind"] == "resumed_late"]
    assert 1 in {one["rank"] for one in late}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from([*records(1, 1)[0], "stride", "mark"])
MOVE_KEYS = st.sampled_from([*move(1, 2), "external", "by"])
FACT_KEYS = st.sampled_from(["launcher", "transport", "vsphere", "power", "ranks", "checksums", "observed_until"])


@settings(max_examples=200)
@given(
    harm=st.lists(st.tuples(st.integers(0, 119), KEYS, JSON), max_size=6),
    moved=st.lists(st.tuples(st.integers(0, 1), MOVE_KEYS, JSON), max_size=3),
    reported=st.dictionaries(FACT_KEYS, JSON, max_size=3),
)
def test_no_record_move_or_fact_makes_it_raise(
    harm: list[tuple[int, str, Any]], moved: list[tuple[int, str, Any]], reported: dict[str, Any]
) -> None:
    made, moves = records(60, 2), [move(25, 27), move(35, 37, rank=0)]
    for index, key, value in harm:
        made[index] = {**made[index], key: value}
    for index, key, value in moved:
        moves[index] = {**moves[index], key: value}
    result = judge(made, moves, reported)
    assert result["verdict"] in {"continuous", "broken", "inconclusive"}


def bursts(many: int) -> list[Record]:
    """Return records that the observer read every three seconds."""
    return [{**one, "seen": SEEN + 3 * ((one["seen"] - SEEN) // 3 + 1)} for one in records(many)]


def in_random_order(many: int) -> list[Record]:
    made = records(many)
    steps = [one["step"] for one in made]
    random.Random(1).shuffle(steps)
    return [{**one, "step": step} for one, step in zip(made, steps)]


def brackets(many: int) -> list[Record]:
    """Return a phase that is marked repeatedly at one step and one moment."""
    return [
        {"rank": 0, "step": 5, "t": START + 5, "seen": SEEN + 5 + index / 1000, "phase": "checkpoint", "mark": mark}
        for index in range(2 * many)
        for mark in ("begin", "end")
    ] + records(20)


def at_one_moment(many: int) -> list[Record]:
    """Return a rank that writes one step repeatedly with another loss each time."""
    return [{**one, "step": 1, "t": START, "seen": SEEN, "loss": index} for index, one in enumerate(records(many))]


@pytest.mark.parametrize("make", [records, bursts, at_one_moment, in_random_order, brackets])
def test_run_time_grows_linearly_with_the_records(make: Any) -> None:
    def seconds(many: int) -> float:
        made = make(many)
        begin = time.process_time()
        judge(made, [move(40, 50)])
        return time.process_time() - begin

    # Eight times the records take linear time, plus the time for sorting and the noise of the machine.
    assert seconds(2000) < 20 * max(seconds(250), 0.02)
