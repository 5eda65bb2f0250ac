# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Step records read into one track per rank, in the order in which they were written and on the observer's clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

from .limits import HIGHEST, TRAIN, number


class Line(NamedTuple):
    """One record: an optimizer step of a rank, or the begin or end of a phase."""

    step: int
    t: float
    seen: float | None
    at: float
    stride: int
    phase: str
    mark: str | None
    raw: Mapping[str, Any]

    @property
    def is_train(self) -> bool:
        """The line tells of an optimizer step and of nothing else."""
        return self.mark is None and self.phase == TRAIN


@dataclass(frozen=True)
class Track:
    """All that one rank wrote: lines by time, steps by number, lines of steps made before, and its usual pace."""

    rank: int
    lines: list[Line]
    times: list[float]
    steps: list[Line]
    repeated: list[Line]
    interval: float


class Reading(NamedTuple):
    """The records by rank, and how many could not be used."""

    ranks: dict[int, list[Line]]
    unreadable: int


def read_lines(records: Iterable[Mapping[str, Any]]) -> Reading:
    """Sort the records by rank, step and clock; records equal in all that the rank wrote count once."""
    ranks: dict[int, list[Line]] = {}
    unreadable = 0
    for record in records:
        rank, line = _finite(record.get("rank")), _line(record)
        if rank is None or line is None:
            unreadable += 1
        else:
            ranks.setdefault(int(rank), []).append(line)
    return Reading({rank: _distinct(ranks[rank]) for rank in sorted(ranks)}, unreadable)


def split_steps(lines: Iterable[Line]) -> tuple[list[Line], list[Line]]:
    """From lines by step: one line for each step, and the further ones of steps that were made again."""
    steps: list[Line] = []
    repeated: list[Line] = []
    for line in lines:
        if line.mark is not None:
            continue
        if not steps or steps[-1].step != line.step:
            steps.append(line)
        elif line.is_train and steps[-1].is_train:
            repeated.append(line)
        elif line.is_train:
            steps[-1] = line
    return steps, repeated


def typical_interval(times: list[float]) -> float:
    """The median time between neighbours, 0 where there are none."""
    return median(after - before for before, after in zip(times, times[1:])) if len(times) > 1 else 0.0


def _line(record: Mapping[str, Any]) -> Line | None:
    step, t, seen = _finite(record.get("step")), _finite(record.get("t")), _finite(record.get("seen"))
    at = t if seen is None else seen
    if step is None or at is None:
        return None
    stride = _finite(record.get("stride"))
    return Line(
        step=int(step),
        t=at if t is None else t,
        seen=seen,
        at=at,
        stride=1 if stride is None else max(1, int(stride)),
        phase=str(record.get("phase") or TRAIN),
        mark=record.get("mark"),
        raw=record,
    )


def _finite(value: object) -> float | None:
    # The plain types first: this is asked four times of every record. What lies beyond is no time and counts nothing.
    # pylint: disable-next=unidiomatic-typecheck # a bool is no number
    given = value if type(value) is float or type(value) is int else number(value)
    return given if given is not None and -HIGHEST <= given <= HIGHEST else None


def _distinct(lines: list[Line]) -> list[Line]:
    lines.sort(key=lambda line: (line.step, line.t, math.inf if line.seen is None else line.seen))
    distinct: list[Line] = []
    for _moment, alike in groupby(lines, key=lambda line: (line.step, line.t)):
        some = list(alike)
        # Of lines that are equal the first one counts, as it was seen first.
        distinct += some if len(some) == 1 else list({_written(line): line for line in reversed(some)}.values())[::-1]
    if all(line.seen is not None for line in distinct):
        # The marks of a phase stand at the step before it; the rank's clock may have been set between the two.
        distinct.sort(key=lambda line: (line.step, line.at))
    return distinct


def _written(line: Line) -> tuple[tuple[str, str], ...]:
    # By text, because a NaN differs from itself; without `seen`, because one line read twice is still one line.
    return tuple(sorted((key, repr(value)) for key, value in line.raw.items() if key != "seen"))
