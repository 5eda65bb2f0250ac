"""The numbers of lines in columns, because a job writes millions of lines per hour."""

from __future__ import annotations

import math
from array import array
from typing import Any, Sequence


class Columns:
    """The numbers of lines. NaN is a missing stamp or rate; ``kind`` is an index of the shared parts."""

    __slots__ = ("at", "kind", "rate", "seen", "step", "t")

    def __init__(self) -> None:
        self.step, self.kind = array("q"), array("I")
        self.t, self.seen, self.at, self.rate = array("d"), array("d"), array("d"), array("d")

    def add(self, step: int, t: float, seen: float | None, at: float, rate: float | None, kind: int) -> None:
        self.step.append(step)
        self.t.append(t)
        self.seen.append(math.nan if seen is None else seen)
        self.at.append(at)
        self.rate.append(math.nan if rate is None else rate)
        self.kind.append(kind)

    def picked(self, indexes: Sequence[int]) -> Columns:
        """Return some of the lines, in the order of the indexes."""
        if isinstance(indexes, range) and indexes.step == 1:
            return self._each(lambda column: column[indexes.start : indexes.stop])
        return self._each(lambda column: array(column.typecode, map(column.__getitem__, indexes)))

    def placed(self, at: array[float]) -> Columns:
        """Return the same lines at other times."""
        columns = self._each(lambda column: column)
        columns.at = at
        return columns

    def _each(self, change: Any) -> Columns:
        columns = Columns()
        for name in self.__slots__:
            setattr(columns, name, change(getattr(self, name)))
        return columns

    def __len__(self) -> int:
        return len(self.step)
