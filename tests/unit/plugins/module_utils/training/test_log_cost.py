"""The cost of parsing a training log: constant memory, and at most twice the time of plain JSON."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from plugins.module_utils.training.output.log import LogReader

from .logs import step_line


@pytest.mark.parametrize(
    "block",
    [
        "".join(step_line(rank, 0) for rank in range(4)) * 50,
        '{"rank": 0, "step": "x"}\n' * 200,
        f"[1,0]<stdout>:{'.' * 3000}[1,1]<stdout>:.\n" * 10,
        "noise" * 2000,
    ],
    ids=["records", "problems", "pieces without line ends", "one endless line"],
)
def test_memory_does_not_grow_with_the_log(block: str) -> None:
    reader = LogReader()
    for _lap in range(20):
        reader.feed(block)
    tracemalloc.start()
    try:
        for _lap in range(60):
            reader.feed(block)
        assert tracemalloc.get_traced_memory()[1] < 600_000
    finally:
        tracemalloc.stop()


@pytest.fixture
def garbage_stays() -> Iterator[None]:
    """Disable garbage collection: the time for objects of other tests would count for the test that keeps records."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("garbage_stays")
def test_parses_records_at_half_the_json_speed() -> None:
    lines = [step_line(rank, step).rstrip("\n") for step in range(500) for rank in range(4)]
    text = "\n".join(lines) + "\n"
    laps = []
    for _lap in range(15):
        begin = time.process_time()
        for line in lines:
            json.loads(line)
        middle = time.process_time()
        assert len(LogReader().feed(text)) == len(lines)
        laps.append((middle - begin, time.process_time() - middle))
    # The best of each: other load on the machine only adds to a lap.
    bare, read = map(min, zip(*laps))
    assert read <= 2 * bare
