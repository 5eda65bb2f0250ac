"""Records in which each has another rank, phase or process: memory and answers are bounded, and none is continuous."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plugins.module_utils.continuity import limits, step_records
from plugins.module_utils.continuity.limits import LISTED, listed
from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.watch.live_pace import LivePace

FEW, MANY = 1_000, 5_000
HOSTILE: dict[str, Callable[[int], dict[str, Any]]] = {
    "rank": lambda number: {"rank": number, "step": 1},
    "phase": lambda number: {"phase": f"phase{number}"},
    "marked_phase": lambda number: {"phase": f"phase{number}", "mark": "begin"},
    "job": lambda number: {"job": f"job{number}"},
    "long_job": lambda number: {"job": f"{number}" * 1000},
    "list": lambda number: {"pid": [number]},
}


def records(change: Callable[[int], dict[str, Any]], count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        moment = {"t": number / 100, "seen": number / 100, "rank": number % 2, "step": number // 2, "stride": 1}
        yield {**moment, "size": 2, "host": "w1", "pid": 7, "job": "1", "phase": "train", "loss": 1.0, **change(number)}


def measured(run: Callable[[], Any]) -> tuple[int, int]:
    """Return the most bytes of memory that a call used, and the size of its answer."""
    tracemalloc.start()
    answer = json.dumps(run())
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, len(answer)


@pytest.fixture(autouse=True)
def _low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_records, "MOST_RANKS", 50)
    monkeypatch.setattr(step_records, "MOST_SHARED_BYTES", 100_000)


@pytest.mark.parametrize("kind", HOSTILE)
def test_memory_and_result_stay_bounded_with_many_values(kind: str) -> None:
    def judge(count: int) -> dict[str, Any]:
        return verdict(records(HOSTILE[kind], count), [], {}, ended="finished", require=())

    few, many = (measured(lambda count=count: judge(count)) for count in (FEW, MANY))

    assert many[0] < 1.5 * few[0] + (1 << 19) and many[1] < 1.5 * few[1] + 1000
    judged = judge(MANY)
    assert judged["verdict"] != "continuous"
    assert any(
        "were omitted, because no job has that number of ranks, phases or processes" in text
        for text in judged["unproven"]
    )


def test_an_ordinary_job_is_within_the_bounds() -> None:
    reading = step_records.read_lines(records(lambda number: {}, MANY))

    assert reading.beyond == 0 and list(reading.ranks) == [0, 1]


def test_the_live_pace_ignores_impossible_ranks() -> None:
    pace = LivePace()

    assert pace.feed(records(lambda number: {"rank": limits.MOST_RANKS + number}, 10)) == 0
    assert pace.ranks() == []


def test_sentences_beyond_the_list_are_counted() -> None:
    assert listed(["a"]) == ["a"]
    assert listed(["a"] * LISTED) == ["a"] * LISTED
    assert listed(["a"] * (LISTED + 2)) == [*(["a"] * LISTED), "2 more are not listed"]
