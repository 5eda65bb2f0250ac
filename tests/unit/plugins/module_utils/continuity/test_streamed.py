"""A verdict on records that are read one by one and kept compressed is the verdict on a list of all of them."""

from __future__ import annotations

import math
import random
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.continuity import packed, step_records, track
from plugins.module_utils.continuity import verdict as judging
from plugins.module_utils.continuity.clock import GROUP, _Least
from plugins.module_utils.continuity.columns import Columns
from plugins.module_utils.continuity.limits import HIGHEST, number
from plugins.module_utils.continuity.lines import IDENTITY, Line
from plugins.module_utils.continuity.packed import PackedColumns
from plugins.module_utils.continuity.step_records import StepReading, loss_of, rate_of

from .cases import CONTINUOUS_CASES, INCONCLUSIVE_CASES
from .harms import BROKEN_CASES
from .lines import columns_of, line

CASES = [*BROKEN_CASES, *INCONCLUSIVE_CASES, *CONTINUOUS_CASES]
BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("d", struct.pack("Q", bits))[0])
NUMBERS = st.floats() | BITS
ROWS = st.lists(
    st.tuples(st.integers(-HIGHEST, HIGHEST), NUMBERS, NUMBERS, st.none() | NUMBERS, NUMBERS, st.integers(0, 2**32 - 1))
)


def bits_of(columns: Columns) -> list[bytes]:
    return [getattr(columns, name).tobytes() for name in Columns.__slots__]


@given(ROWS, st.integers(1, 5))
def test_packed_numbers_keep_all_their_bits(rows: list[Any], size: int) -> None:
    columns, blocks = Columns(), PackedColumns()
    for step, t, seen, at, rate, kind in rows:
        columns.add(step, t, seen, seen if at is None else at, rate, kind)
    for begin in range(0, len(rows), size):
        blocks.add(columns.between(begin, begin + size))
    assert blocks.count == len(rows)
    assert bits_of(blocks.unpacked()) == bits_of(PackedColumns.of(columns).unpacked()) == bits_of(columns)


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=4 * GROUP), st.data())
def test_the_least_offset_between_two_lines(offsets: list[float], data: Any) -> None:
    begin = data.draw(st.integers(0, len(offsets) - 2))
    end = data.draw(st.integers(begin + 1, len(offsets)))
    steps = columns_of([line(index, float(index)) for index in range(len(offsets))])
    column = columns_of([line(0, offset) for offset in offsets]).at
    assert _Least(steps, column)._between(begin, end) == min(offsets[begin:end])


def read_at_once(records: Iterable[Mapping[str, Any]]) -> StepReading:
    """Return what ``read_lines`` returns, from lists of all records."""
    made: dict[int, list[tuple[Line, str]]] = defaultdict(list)
    unreadable = 0
    for record in records:
        numbers = [number(record.get(key)) for key in ("rank", "step", "t", "seen")]
        rank, step, t, seen = [one if one is not None and abs(one) <= HIGHEST else None for one in numbers]
        at = t if seen is None else seen
        if rank is None or step is None or at is None:
            unreadable += 1
            continue
        stride = number(record.get("stride"))
        one = Line(
            step=int(step),
            t=at if t is None else t,
            seen=seen,
            at=at,
            stride=max(1, int(stride)) if stride is not None and abs(stride) <= HIGHEST else 1,
            phase=str(record.get("phase") or "train"),
            mark=record.get("mark"),
            identity={key: record.get(key) for key in IDENTITY},
            loss=loss_of(record.get("loss")),
            rate=rate_of(record.get("images_per_sec")),
        )
        text = repr(sorted((key, repr(value)) for key, value in record.items() if key != "seen"))
        made[int(rank)].append((one, text))
    ranks = {rank: columns_of(_each_once(made[rank])) for rank in sorted(made)}
    return StepReading(ranks, unreadable, is_stamped=False)


def _each_once(written: list[tuple[Line, str]]) -> list[Line]:
    known, found = set(), []
    for one, text in sorted(
        written, key=lambda pair: (pair[0].step, pair[0].t, math.inf if pair[0].seen is None else pair[0].seen)
    ):
        if (one.step, one.t, text) not in known:
            known.add((one.step, one.t, text))
            found.append(one)
    is_stamped = all(one.seen is not None for one in found)
    return sorted(found, key=lambda one: (one.step, one.at)) if is_stamped else found


def files_of(records: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """Return the records as they are read from several files that overlap, with lines that cannot be used."""
    parts = [[dict(one) for one in records if chance.random() < 0.6] for _file in range(2)]
    whole = [{"step": 1}, *records, {"rank": 0, "step": float("nan"), "t": 1.0}]
    return [*parts[0], *whole, *parts[1]]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each rank have many blocks, and few unpacked lines."""
    for module, name, value in (
        (packed, "BLOCK", 7),
        (step_records, "BLOCK", 7),
        (step_records, "SMALLEST_BLOCK", 3),
        (step_records, "MOST_UNPACKED", 20),
        (track, "MOST_UNPACKED", 20),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "case", [*BROKEN_CASES, *INCONCLUSIVE_CASES, *CONTINUOUS_CASES], ids=lambda case: case.__name__
)
def test_the_verdict_is_that_on_a_list_of_all_records(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number_ in range(4):
        chance = random.Random(f"streamed {case.__name__} {number_}")
        run, _expected = case(chance)
        (records, moves, limits), named = run.arguments()
        for record in records if number_ == 1 else ():
            if chance.random() < 0.1:
                record.pop("seen", None)
        records = files_of(records, chance) if number_ == 2 else records
        limits = {**limits, **({"min_throughput_ratio": 0.9} if number_ else {})}
        streamed = judging.verdict(iter(records), moves, limits, **named)
        with monkeypatch.context() as patched:
            patched.setattr(judging, "read_lines", read_at_once)
            at_once = judging.verdict(records, moves, limits, **named)
        assert repr(streamed) == repr(at_once)
