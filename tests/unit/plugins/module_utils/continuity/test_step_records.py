"""Step records as they are read: valid records, records that count once, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.continuity.lines import FINITE, IDENTITY, Line
from plugins.module_utils.continuity.step_records import read_lines, split_steps, typical_interval

from .lines import columns_of, line


def record(step: int, t: float, **others: Any) -> dict[str, Any]:
    return {"rank": 0, "step": step, "t": t, **others}


def read(*records: dict[str, Any]) -> list[tuple[int, float, float | None]]:
    return [(one.step, one.t, one.seen) for one in read_lines(records).ranks[0]]


def split(lines: list[Line]) -> tuple[list[Line], list[Line]]:
    steps, repeated = split_steps(columns_of(lines))
    return list(steps), list(repeated)


def test_ranks_are_sorted_regardless_of_arrival() -> None:
    reading = read_lines(record(1, 1.0, rank=rank) for rank in ("2", 0, 1.0))
    assert list(reading.ranks) == [0, 1, 2]
    assert reading.unreadable == 0


def test_counts_records_without_rank_step_or_time() -> None:
    reading = read_lines([{"step": 1, "t": 1.0}, {"rank": 0, "t": 1.0}, {"rank": 0, "step": 1}, record(1, 1.0)])
    assert (len(reading.ranks[0]), reading.unreadable) == (1, 3)


@pytest.mark.parametrize("key", ["rank", "step", "t"])
def test_accepts_numbers_up_to_exact_float_sums(key: str) -> None:
    for most in (1 << 53, -(1 << 53)):
        assert read_lines([{**record(1, 1.0), key: most}]).unreadable == 0
        assert read_lines([{**record(1, 1.0), key: str(2 * most)}]).unreadable == 1
        assert read_lines([{**record(1, 1.0), key: most + (2 if most > 0 else -2)}]).unreadable == 1


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), "many", [7], None, 10**400])
def test_rejects_a_record_without_a_numeric_step(value: Any) -> None:
    assert read_lines([record(value, 1.0)]).unreadable == 1


def test_a_line_has_every_value_of_its_record() -> None:
    result = record(7, 12.5, seen="13.5", stride="5", phase="eval", mark="begin", host="w1", pid=7)
    result.update(loss="2.5", images_per_sec=80)
    (one,) = read_lines([result]).ranks[0]
    assert one[:7] == (7, 12.5, 13.5, 13.5, 5, "eval", "begin")
    assert one.identity == {**dict.fromkeys(IDENTITY), "host": "w1", "pid": 7}
    assert (one.loss, one.rate) == (FINITE, 80.0)
    assert not one.is_train


def test_missing_values_of_a_record_have_defaults() -> None:
    (one,) = read_lines([record(7, 12.5)]).ranks[0]
    assert one[:7] == (7, 12.5, None, 12.5, 1, "train", None)
    assert one.is_train
    (seen_only,) = read_lines([{"rank": 0, "step": 7, "seen": 3.0, "phase": ""}]).ranks[0]
    assert seen_only[:7] == (7, 3.0, 3.0, 3.0, 1, "train", None)


def test_a_mark_or_other_phase_is_not_training() -> None:
    assert not line(1, 1.0, mark="end").is_train
    assert not line(1, 1.0, phase="eval").is_train


@pytest.mark.parametrize(
    ("given", "stride"),
    [(1, 1), (2, 2), (1.5, 1), (0, 1), (-3, 1), (0.5, 1), ("nan", 1), (None, 1), (1 << 53, 1 << 53), (1 << 54, 1)],
)
def test_a_stride_is_at_least_one_step(given: Any, stride: int) -> None:
    assert read_lines([record(1, 1.0, stride=given)]).ranks[0][0].stride == stride


def test_a_record_read_twice_counts_once() -> None:
    for times in ((5.0, 7.0), (7.0, 5.0), (None, 5.0), (5.0, None), (9.0, 5.0, 7.0)):
        assert read(*(record(1, 1.0, seen=seen) for seen in times)) == [(1, 1.0, 5.0)]


def test_the_order_of_record_keys_does_not_matter() -> None:
    assert len(read(record(1, 1.0), dict(reversed(record(1, 1.0).items())))) == 1


def test_records_with_different_values_all_count() -> None:
    assert read(record(1, 1.0, loss=2.0, seen=4.0), record(1, 1.0, loss=1.0, seen=3.0)) == [
        (1, 1.0, 3.0),
        (1, 1.0, 4.0),
    ]
    nothing = float("nan")
    assert len(read(record(1, 1.0, loss=nothing), record(1, 1.0, loss=float("nan")))) == 1


def test_sorts_lines_by_step_then_arrival() -> None:
    early, late = record(5, 10.0, seen=1.0), record(5, 9.0, mark="end", seen=2.0)
    assert read(record(6, 0.0, seen=0.0), late, early) == [(5, 10.0, 1.0), (5, 9.0, 2.0), (6, 0.0, 0.0)]
    assert read(record(6, 0.0), late, early) == [(5, 9.0, 2.0), (5, 10.0, 1.0), (6, 0.0, None)]


def test_lines_without_arrival_keep_their_order() -> None:
    pair = [record(5, 9.0, loss=loss, seen=seen) for loss, seen in ((1.0, 1.0), (2.0, 2.0))]
    assert read(record(6, 0.0), *pair)[:2] == [(5, 9.0, 1.0), (5, 9.0, 2.0)]
    assert read(record(6, 0.0), *reversed(pair))[:2] == [(5, 9.0, 1.0), (5, 9.0, 2.0)]


def test_separates_repeated_steps_from_first_ones() -> None:
    first, pause, trained, again = line(1, 1.0), line(2, 2.0, phase="eval"), line(2, 3.0), line(2, 4.0)
    mark, other = line(2, 2.5, phase="eval", mark="begin"), line(2, 5.0, phase="checkpoint")
    assert split([first, pause, mark, trained, again]) == ([first, trained], [again])
    assert split([first, trained, other, again]) == ([first, trained], [again])
    assert split([first, pause, other]) == ([first, pause], [])
    before = [line(-2, -1.0), line(-1, 0.0)]
    assert split([*before, first, pause, trained, again]) == ([*before, first, trained], [again])
    other_pause = line(1, 0.0, phase="eval")
    assert split([other_pause, line(2, 1.0), pause, again]) == ([other_pause, line(2, 1.0)], [again])


@pytest.mark.parametrize(
    ("times", "interval"), [([], 0.0), ([5.0], 0.0), ([1.0, 3.0], 2.0), ([1.0, 3.0, 4.0, 9.0], 2.0)]
)
def test_the_usual_time_between_lines_is_the_median(times: list[float], interval: float) -> None:
    assert typical_interval(times) == interval
