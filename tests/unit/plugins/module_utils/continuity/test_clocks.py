"""The continuity verdict with clocks that differ or are set, records that are late or unordered, and marked phases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.verdict import verdict

from .runs import changed, kinds, move, records

MOVES = (move(30, 40),)


def judge(made: list[dict[str, Any]], moves: Sequence[dict[str, Any]] = MOVES, **limits: Any) -> dict[str, Any]:
    return verdict(made, moves, {"resume_deadline_s": 20, **limits}, ended="running", require=())


def test_an_arriving_line_bounds_the_lines_before_it() -> None:
    """One line arrives 50 s late; the later lines showed in the meantime that the rank was alive."""
    made = [{**r, "seen": r["seen"] + 50} if r["rank"] == 2 and r["step"] == 60 else r for r in records()]
    result = judge(made, [])
    assert result["longest_gap_s"] == pytest.approx(2.0)
    assert result["clock_steps"] == []


def pause(phase: str, seconds: float, marked: bool) -> list[dict[str, Any]]:
    """Return records in which all ranks pause before step 60, shown by two marks or by the phase of the step."""
    made = records(stall=(60, seconds))
    if not marked:
        return changed(made, lambda r: r["step"] == 60, phase=phase)
    lines = [
        {**r, "phase": phase, "mark": mark, "t": r["t"] - before, "seen": r["seen"] - before, "loss": None}
        for r in made
        if r["step"] == 60
        for mark, before in (("begin", seconds + 0.5), ("end", 0.3))
    ]
    return made + [{**line, "step": 59} for line in lines]


@pytest.mark.parametrize("phase", ["eval", "checkpoint", "input", "compile"])
@pytest.mark.parametrize("marked", [True, False])
def test_marked_phases_have_their_own_limits(phase: str, marked: bool) -> None:
    made, moves = pause(phase, 200.0, marked), [move(30, 270)]
    assert kinds(judge(made, moves)) == {"gap"}
    assert kinds(judge(made, moves, phases={phase: 190})) == {"gap"}
    assert judge(made, moves, phases={"other": 300})["breaches"][0]["detail"].count(f"phase {phase} (limit 120 s)") == 1
    for limits in ({"phases": {phase: 202}}, {"max_gap_s": {"train": 120, phase: 202}}):
        result = judge(made, moves, **limits)
        assert result["verdict"] == "continuous"
        assert result["longest_gap_s"] < 3
        assert result["longest_gap_by_phase_s"][phase] == pytest.approx(200.2 if marked else 201.0)


@pytest.mark.parametrize("marked", [True, False])
def test_a_pause_after_a_move_is_not_late(marked: bool) -> None:
    assert judge(pause("eval", 100.0, marked), [move(50, 59.2)], phases={"eval": 150})["verdict"] == "continuous"


def test_a_phase_excuses_only_stalls_between_its_marks() -> None:
    made = pause("eval", 100.0, marked=True)
    before = [{**r, "seen": r["seen"] + 150, "t": r["t"] + 150} if r["step"] >= 55 else r for r in made]
    assert kinds(judge(before, [move(30, 230)], phases={"eval": 600})) == {"gap"}


def test_accepts_a_step_with_a_phase_and_marks() -> None:
    assert judge(changed(records(), lambda r: r["step"] == 60, phase="checkpoint"))["verdict"] == "continuous"
    assert judge(pause("eval", 1.0, marked=True))["verdict"] == "continuous"


@pytest.mark.parametrize("by", [-3600.0, -60.0])
def test_setting_a_clock_back_does_not_lengthen_pauses(by: float) -> None:
    made = [{**r, "t": r["t"] + by} if r["step"] >= 60 or "mark" in r else r for r in pause("eval", 200.0, marked=True)]
    result = judge(made, [], phases={"eval": 300})
    assert result["verdict"] == "continuous"
    assert result["longest_gap_s"] < 2


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.floats(-1e6, 1e6), st.sampled_from(["plain", "identity", "gap", "lost"]))
def test_order_and_clock_origin_do_not_matter(seed: int, origin: float, harm: str) -> None:
    made = records(ranks=2, stall=(35, 130.0 if harm == "gap" else 3.0))
    if harm == "identity":
        made = changed(made, lambda r: r["step"] >= 50 and r["rank"] == 0, pid=1)
    if harm == "lost":
        made = [r for r in made if (r["step"], r["rank"]) != (50, 1)]
    first = judge(made)
    shifted = [{**r, "seen": r["seen"] + origin} for r in made]
    random.Random(seed).shuffle(shifted)
    moves = [{**MOVES[0], "started": MOVES[0]["started"] + origin, "completed": MOVES[0]["completed"] + origin}]
    second = judge(shifted, moves)
    assert (second["verdict"], kinds(second)) == (first["verdict"], kinds(first))
    assert second["longest_gap_s"] == pytest.approx(first["longest_gap_s"], abs=1e-6)
