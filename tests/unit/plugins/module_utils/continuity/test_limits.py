"""The limits of a verdict: their defaults, their forms, and the values that are refused."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from plugins.module_utils.continuity.limits import Limits, number, read_limits


@pytest.mark.parametrize(
    "given", [{}, dict.fromkeys(("max_gap_s", "phases", "warmup_steps", "resume_deadline_s", "min_throughput_ratio"))]
)
def test_an_absent_limit_has_its_documented_default(given: dict[str, Any]) -> None:
    assert read_limits(given) == Limits(120.0, {}, 0, 120.0, None, ())


def test_takes_each_given_limit_and_names_unknown_ones() -> None:
    given = {"max_gap_s": 7, "phases": {"eval": "50"}, "warmup_steps": 3, "resume_deadline_s": 9.5}
    read = read_limits({**given, "min_throughput_ratio": 0, "max_gap": 4, 5: 6})
    assert read == Limits(7.0, {"eval": 50.0}, 3, 9.5, 0.0, ("max_gap", "5"))
    assert (read.gap("eval"), read.gap("train"), read.gap("other")) == (50.0, 7.0, 7.0)


def test_accepts_the_longest_silence_by_phase() -> None:
    read = read_limits({"max_gap_s": {"train": 30, "eval": 600, "io": None}, "phases": {"eval": 50}})
    assert (read.max_gap_s, read.phases) == (30.0, {"train": 30.0, "eval": 50.0, "io": 120.0})
    assert read_limits({"max_gap_s": {"eval": 600}}).max_gap_s == 120.0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_gap_s": "long"}, "max_gap_s is 'long': expected a number of 0 or more."),
        ({"max_gap_s": -1}, "max_gap_s is -1: expected a number of 0 or more."),
        ({"resume_deadline_s": math.nan}, "resume_deadline_s is nan: expected a number of 0 or more."),
        ({"warmup_steps": True}, "warmup_steps is True: expected a number of 0 or more."),
        ({"warmup_steps": math.inf}, "warmup_steps is inf: expected a number from 0 to 9007199254740992."),
        ({"min_throughput_ratio": 10**400}, "min_throughput_ratio is out of range: expected a number of 0 or more."),
        (
            {"min_throughput_ratio": "1e400"},
            "min_throughput_ratio is inf: expected a number from 0 to 9007199254740992.",
        ),
        ({"max_gap_s": -(1 << 53)}, "max_gap_s is -9007199254740992: expected a number of 0 or more."),
        ({"min_throughput_ratio": []}, "min_throughput_ratio is []: expected a number of 0 or more."),
        ({"phases": {"eval": "x"}}, "the limit of phase eval is 'x': expected a number of 0 or more."),
    ],
)
def test_refuses_an_unknown_limit_with_its_name(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        read_limits(given)


def test_accepts_zero_as_a_limit() -> None:
    assert read_limits({"max_gap_s": 0}).max_gap_s == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3.0), ("3.5", 3.5), ("inf", math.inf), (True, None), (None, None), ("x", None), ([1], None), (10**400, None)],
)
def test_accepts_only_finite_numbers(value: object, expected: float | None) -> None:
    assert number(value) == expected
