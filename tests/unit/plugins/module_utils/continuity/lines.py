"""Lines and tracks written by hand, for tests that need only a few of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plugins.module_utils.continuity.lines import Columns, Kind, Line, Lines
from plugins.module_utils.continuity.step_records import Track, loss_of, rate_of


def line(step: int, at: float, **others: Any) -> Line:
    """Return a step that arrived at the time on the clock of its rank; ``others`` are other values."""
    given = {"loss": loss_of(others.pop("loss", None)), "rate": rate_of(others.pop("rate", None))}
    values = {
        "t": at,
        "seen": at,
        "at": at,
        "stride": 1,
        "phase": "train",
        "mark": None,
        "identity": {},
        **given,
        **others,
    }
    return Line(step=step, **values)


def columns_of(lines: Iterable[Line]) -> Lines:
    """Return the same lines as columns."""
    columns = Columns()
    kinds: list[Kind] = []
    known: dict[Any, int] = {}
    for entry in lines:
        key = entry.stride, entry.phase, id(entry.mark), entry.loss, id(entry.identity)
        if key not in known:
            known[key] = len(kinds)
            kinds.append(Kind(entry.stride, entry.phase, entry.mark, entry.loss, entry.identity))
        columns.add(entry.step, entry.t, entry.seen, entry.at, entry.rate, known[key])
    return Lines(columns, kinds)


def track(*lines: Line, rank: int = 0) -> Track:
    """Return the lines of one rank, in the order of time."""
    return Track(rank, columns_of(lines))


def seconds(*steps: int, begin: float = 0.0, rank: int = 0, **others: Any) -> Track:
    """Return steps at intervals of one second."""
    return track(*(line(step, begin + index, **others) for index, step in enumerate(steps)), rank=rank)
