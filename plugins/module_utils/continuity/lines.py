"""The lines of a rank, stored as columns of numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import starmap, tee
from operator import le
from typing import Any, NamedTuple, Sequence, TypeVar, overload

from .limits import TRAIN

IDENTITY = ("host", "pid", "start", "job", "boot_id", "generation", "size")
FINITE = "finite"
Item = TypeVar("Item")


class Line(NamedTuple):
    """One record: an optimizer step of a rank, or the start or end of a phase.

    ``loss`` is empty without one, ``FINITE``, or the text of a value that is not finite.
    """

    step: int
    t: float
    seen: float | None
    at: float
    stride: int
    phase: str
    mark: str | None
    identity: Mapping[str, Any]
    loss: str = ""
    rate: float | None = None

    @property
    def is_train(self) -> bool:
        """Return whether the line is an optimizer step and nothing else."""
        return self.mark is None and self.phase == TRAIN


class Kind(NamedTuple):
    """The part of a line that many lines share."""

    stride: int
    phase: str
    mark: str | None
    loss: str
    identity: Mapping[str, Any]

    @property
    def is_train(self) -> bool:
        """Return whether such a line is an optimizer step and nothing else."""
        return self.mark is None and self.phase == TRAIN


class Lines(Sequence[Line]):
    """A sequence of lines, stored as columns; each line is built when it is read."""

    def __init__(self, columns: Columns, kinds: Sequence[Kind]) -> None:
        self.columns, self.kinds = columns, kinds
        self.step, self.t, self.at = columns.step, columns.t, columns.at
        self.rate, self.kind = columns.rate, columns.kind
        self.stamps = len(self.step) - sum(map(math.isnan, columns.seen))
        self.is_stamped = self.stamps == len(self.step)
        if self.is_stamped and columns.at == columns.seen:
            # One column is enough for lines at the times of their stamps.
            columns.at = self.at = columns.seen

    def placed(self, at: array[float]) -> Lines:
        """Return the same lines at other times of the observer's clock."""
        return self if at == self.at else Lines(self.columns.placed(at), self.kinds)

    def picked(self, indexes: Sequence[int]) -> Lines:
        """Return some of the lines, in the order of the indexes."""
        if len(indexes) == len(self) and all(index == place for place, index in enumerate(indexes)):
            return self
        return Lines(self.columns.picked(indexes), self.kinds)

    def ordered(self, *keys: Sequence[float]) -> Lines:
        if all(starmap(le, neighbours(zip(*keys)) if len(keys) > 1 else neighbours(*keys))):
            return self
        return self.picked(sorted_indexes(*keys))

    def used(self) -> list[Kind]:
        """Return the shared parts that some line has."""
        return [self.kinds[kind] for kind in sorted(set(self.kind))]

    def __len__(self) -> int:
        return len(self.step)

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...

    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        seen, rate = self.columns.seen[index], self.rate[index]
        return self._line(self.step[index], self.t[index], seen, self.at[index], rate, self.kind[index])

    def __iter__(self) -> Iterator[Line]:
        return map(self._line, self.step, self.t, self.columns.seen, self.at, self.rate, self.kind)

    def _line(self, step: int, t: float, seen: float, at: float, rate: float, kind: int) -> Line:
        stride, phase, mark, loss, identity = self.kinds[kind]
        stamp, given = None if math.isnan(seen) else seen, None if math.isnan(rate) else rate
        return Line(step, t, stamp, at, stride, phase, mark, identity, loss, given)


def sorted_indexes(*keys: Sequence[float]) -> Sequence[int]:
    """Return the indexes of columns in the order of the first column, then of the second and so on."""
    order: Sequence[int] = range(len(keys[0]))
    for column in reversed(keys):
        # One key at a time, because a tuple for each line would take much memory.
        order = sorted(order, key=column.__getitem__)
    return order


def neighbours(items: Iterable[Item]) -> Iterator[tuple[Item, Item]]:
    """Yield each item with the next one, without a copy of all items."""
    first, second = tee(items)
    next(second, None)
    return zip(first, second)


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
