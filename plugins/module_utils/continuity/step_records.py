# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Step records read into the lines of each rank, in the order in which they were written."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple, Sequence

from .limits import HIGHEST, TRAIN, number
from .lines import FINITE, IDENTITY, Columns, Kind, Lines, neighbours

KIND = ("stride", "phase", "mark", *IDENTITY)
READ = frozenset((*KIND, "rank", "step", "t", "seen", "loss", "images_per_sec"))


@dataclass(frozen=True)
class Track:
    """The lines of one rank by time, its steps by number, the steps that it made again, and its usual pace."""

    rank: int
    lines: Lines
    steps: Lines
    repeated: Lines
    interval: float

    @property
    def times(self) -> Sequence[float]:
        """Return the times of all lines on the observer's clock."""
        return self.lines.at


class Reading(NamedTuple):
    """The lines of each rank, and how many records could not be used."""

    ranks: dict[int, Lines]
    unreadable: int


def read_lines(records: Iterable[Mapping[str, Any]]) -> Reading:
    """Sort the records by rank, step and clock; records that are equal in all that the rank wrote count once."""
    readers: dict[int, _Reader] = {}
    unreadable = 0
    for record in records:
        rank, step, t, seen = [_finite(record.get(key)) for key in ("rank", "step", "t", "seen")]
        at = t if seen is None else seen
        if rank is None or step is None or at is None:
            unreadable += 1
            continue
        if int(rank) not in readers:
            readers[int(rank)] = _Reader()
        readers[int(rank)].add(record, int(step), t, seen, at)
    return Reading({rank: readers.pop(rank).lines() for rank in sorted(readers)}, unreadable)


def split_steps(lines: Lines) -> tuple[Lines, Lines]:
    """Split lines sorted by step: one line for each step, and the other lines of steps that were made again."""
    steps, repeated = array("q"), array("q")
    is_train = [kind.is_train for kind in lines.kinds]
    for index, (step, kind) in enumerate(zip(lines.step, lines.kind)):
        if lines.kinds[kind].mark is not None:
            continue
        if not steps or lines.step[steps[-1]] != step:
            steps.append(index)
        elif is_train[kind] and is_train[lines.kind[steps[-1]]]:
            repeated.append(index)
        elif is_train[kind]:
            steps[-1] = index
    return lines.picked(steps), lines.picked(repeated)


def typical_interval(times: Sequence[float]) -> float:
    """Return the median time between neighbours, 0 if there are none."""
    return median(after - before for before, after in neighbours(times)) if len(times) > 1 else 0.0


class _Reader:
    """The records of one rank as columns; values that many records share are kept once."""

    def __init__(self) -> None:
        self._columns, self._prints = Columns(), array("q")
        self._kinds: list[Kind] = []
        self._known: dict[str, int] = {}

    def add(self, record: Mapping[str, Any], step: int, t: float | None, seen: float | None, at: float) -> None:
        """Append a record, of which these numbers are known."""
        values = tuple(map(record.get, KIND))
        loss = loss_of(record.get("loss"))
        # As text, because 1, 1.0 and true are equal, and a list has no hash.
        text = f"{values!r}{loss}"
        kind = self._known.get(text)
        if kind is None:
            self._known[text] = kind = len(self._kinds)
            self._kinds.append(_kind(values, loss))
        rate = rate_of(record.get("images_per_sec"))
        self._columns.add(step, at if t is None else t, seen, at, rate, kind)
        self._prints.append(_print(record, text))

    def lines(self) -> Lines:
        """Return the lines in their order, each once."""
        return _distinct(Lines(self._columns, self._kinds), self._prints)


def _kind(values: Sequence[Any], loss: str) -> Kind:
    stride, phase, mark, *identity = values
    given = _finite(stride)
    return Kind(
        stride=1 if given is None else max(1, int(given)),
        phase=str(phase or TRAIN),
        mark=mark,
        loss=loss,
        identity=dict(zip(IDENTITY, identity)),
    )


def rate_of(value: object) -> float | None:
    """Return the rate that a record gives; None if it gives none, or one that nothing can have."""
    rate = number(value)
    return rate if rate is not None and abs(rate) <= HIGHEST else None


def loss_of(value: object) -> str:
    """Return the loss as lines keep it: empty without one, FINITE, or the text of a value that is not finite."""
    loss = number(value)
    return "" if loss is None else FINITE if math.isfinite(loss) else str(value)


def _print(record: Mapping[str, Any], kind: str) -> int:
    """Return a number that differs for records that differ in anything but the time at which they were received."""
    get = record.get
    others = [(key, repr(record[key])) for key in record if key not in READ]
    size = len(record) - ("seen" in record)
    written = (get("rank"), get("step"), get("t"), get("loss"), get("images_per_sec"), size, sorted(others))
    return hash(f"{written!r}{kind}")


def _finite(value: object) -> float | None:
    # The plain types first, because each record has four of them. Greater numbers are neither a time nor a count.
    # pylint: disable-next=unidiomatic-typecheck # a bool is not a number
    given = value if type(value) is float or type(value) is int else number(value)
    return given if given is not None and -HIGHEST <= given <= HIGHEST else None


def _distinct(lines: Lines, prints: Sequence[int]) -> Lines:
    if any(after <= before for before, after in neighbours(zip(lines.step, lines.t))):
        lines = lines.picked(_without_doubles(lines, prints))
    if lines.is_stamped:
        # The marks of a phase stand at the step before it; the rank's clock may have been set between the two.
        lines = lines.ordered(lines.step, lines.at)
    return lines


def _without_doubles(lines: Lines, prints: Sequence[int]) -> list[int]:
    """Return the indexes of the lines by step, clock and stamp; of lines that are equal that of the first."""

    def place(index: int) -> tuple[int, float]:
        return lines.step[index], lines.t[index]

    order = sorted(range(len(lines)), key=lambda index: (*place(index), lines.stamp(index, math.inf)))
    distinct: list[int] = []
    for _place, alike in groupby(order, key=place):
        first = {prints[index]: index for index in reversed([*alike])}
        distinct += reversed(first.values())
    return distinct
