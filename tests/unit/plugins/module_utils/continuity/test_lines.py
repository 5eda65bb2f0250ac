"""Lines in columns are equal to lists of lines, and smaller."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.continuity.lines import Line, neighbours
from plugins.module_utils.continuity.step_records import read_lines
from plugins.module_utils.continuity.verdict import verdict

from .lines import columns_of, line
from .runs import records

TIMES = st.floats(-5, 5).map(lambda value: round(value, 1))
LINES = st.lists(
    st.builds(
        line,
        st.integers(0, 5),
        TIMES,
        t=TIMES,
        seen=st.none() | TIMES,
        stride=st.integers(1, 2),
        mark=st.sampled_from([None, "begin", "end"]),
        loss=st.sampled_from([None, 1.5, "nan"]),
        rate=st.sampled_from([None, 7.0, "inf"]),
        identity=st.sampled_from([{"host": "w1"}, {"pid": [1]}]),
    ),
    max_size=8,
)
RECORD = st.fixed_dictionaries(
    {"rank": st.sampled_from([0, 1, "1", None]), "step": st.integers(0, 3), "t": st.integers(0, 3)},
    optional={
        "seen": st.sampled_from([None, 1.0, 2, 3.0]),
        "host": st.sampled_from(["w1", None, 1, 1.0, True, ["w1"]]),
        "loss": st.sampled_from([2.5, "2.5", float("nan"), None]),
        "stride": st.sampled_from([1, 1.0, 2]),
        "extra": st.sampled_from([1, 1.0, "1"]),
    },
)


@given(LINES)
def test_columns_behave_like_the_list_of_lines(lines: list[Line]) -> None:
    columns = columns_of(lines)
    assert (list(columns), len(columns)) == (lines, len(lines))
    assert list(reversed(columns)) == lines[::-1]
    assert columns[1:-1] == lines[1:-1]
    assert [columns[index] for index in range(-len(lines), 0)] == lines
    assert list(columns.ordered(columns.step, columns.at)) == sorted(lines, key=lambda one: (one.step, one.at))
    assert list(columns.picked(range(0, len(lines), 2))) == lines[::2]
    assert columns.stamps == sum(one.seen is not None for one in lines)
    assert list(neighbours(columns)) == [*pairwise(lines)]
    assert all(any(one.mark == kind.mark for one in lines) for kind in columns.used())


def written(record: dict[str, Any]) -> str:
    return repr(sorted((key, repr(value)) for key, value in record.items() if key != "seen"))


@settings(max_examples=300)
@given(st.lists(RECORD, max_size=12))
def test_keeps_one_of_identical_records_of_a_rank(made: list[dict[str, Any]]) -> None:
    reading = read_lines(iter(made))
    assert reading.unreadable == sum(record["rank"] is None for record in made)
    for rank in (0, 1):
        own = [record for record in made if record["rank"] is not None and int(record["rank"]) == rank]
        lines = reading.ranks.get(rank, [])
        assert len(lines) == len({written(record) for record in own})
        places = [(record["step"], record["t"]) for record in own]
        assert {(one.step, one.t) for one in lines} == set(places)
        assert [one.step for one in lines] == sorted(one.step for one in lines)


def many(steps: int) -> Iterator[dict[str, Any]]:
    """Yield records that share no object, as parsed lines do not."""
    for step in range(steps):
        for record in records(steps=1, first=step):
            yield {**record, "t": record["t"] + step, "seen": record["seen"] + step, "loss": 1.0 + step}


@pytest.mark.parametrize("steps", [2_000])
def test_a_record_takes_few_bytes(steps: int) -> None:
    verdict(many(10), [], {}, ended="running", require=())
    tracemalloc.start()
    result = verdict(many(steps), [], {}, ended="running", require=())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result["verdict"] == "continuous"
    assert most / (4 * steps) < 150
