"""Reads step records into the lines of each rank, in the order in which they were written, and into its track."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from itertools import groupby, islice
from operator import eq, lt
from statistics import median
from typing import Any, NamedTuple, Sequence

from .limits import HIGHEST, LOSS, MOST_RANKS, TRAIN, number
from .lines import FINITE, IDENTITY, Columns, Kind, Lines, neighbours, sorted_indexes

KIND = ("stride", "phase", "mark", *IDENTITY)
# Values that records share are stored once. These are the bounds if the values of all records differ.
MOST_PHASES, MOST_SHARED_BYTES, BYTES_OF_A_KIND = 100, 64 << 20, 1000
PLAIN, NUMBERS = frozenset((str, int, type(None))), frozenset((int, float, type(None)))
READ = frozenset((*KIND, "rank", "step", "t", "seen", "loss", "images_per_sec"))


class StepReading(NamedTuple):
    """The lines of each rank, the number of unusable records, and whether all usable ones have a stamp.

    ``beyond`` is the number of records that were omitted because no job has that number of ranks, phases or processes.
    """

    ranks: Mapping[int, Lines]
    unreadable: int
    is_stamped: bool
    beyond: int = 0


def read_lines(records: Iterable[Mapping[str, object]]) -> StepReading:
    """Sort the records by rank, step and clock; records with the same content from the rank count once."""
    readers: dict[int, _Reader] = {}
    shared = _Shared()
    unreadable, beyond = 0, 0
    for record in records:
        rank, step, t, seen = [_finite(record.get(key)) for key in ("rank", "step", "t", "seen")]
        at = t if seen is None else seen
        if rank is None or step is None or at is None:
            unreadable += 1
            continue
        reader = readers.get(int(rank))
        if reader is None and len(readers) >= MOST_RANKS:
            beyond += 1
            continue
        if reader is None:
            reader = readers[int(rank)] = _Reader(shared)
        beyond += not reader.add(record, int(step), t, seen, at)
    is_stamped = all(reader.is_stamped for reader in readers.values())
    return StepReading({rank: readers.pop(rank).lines() for rank in sorted(readers)}, unreadable, is_stamped, beyond)


def split_steps(lines: Lines) -> tuple[Lines, Lines]:
    """Split lines sorted by step into one line for each step, and the other lines of repeated steps."""
    if all(kind.mark is None for kind in lines.used()) and all(map(lt, lines.step, islice(lines.step, 1, None))):
        return lines, lines.picked(range(0))
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


class _Shared:
    """The values that the records of all ranks share, within bounds."""

    def __init__(self) -> None:
        self._phases: set[str] = set()
        self._left = MOST_SHARED_BYTES

    def takes(self, phase: str, text: str) -> bool:
        """Return whether another shared part of records is within the bounds, and count it."""
        if self._left < 0 or (phase not in self._phases and len(self._phases) >= MOST_PHASES):
            return False
        self._phases.add(phase)
        self._left -= len(text) + BYTES_OF_A_KIND
        return True


class _Reader:
    """The records of one rank in columns; values that many records share are stored once."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._columns, self._prints = Columns(), array("I")
        self._kinds: list[Kind] = []
        self._known: dict[Any, tuple[int, str]] = {}
        self.is_stamped = True

    def add(self, record: Mapping[str, object], step: int, t: float | None, seen: float | None, at: float) -> bool:
        """Append a record with these numbers, and return whether it is within the bounds."""
        known = self._kind_of(tuple(map(record.get, KIND)), loss_of(record.get("loss")))
        if known is None:
            return False
        kind, text = known
        rate = rate_of(record.get("images_per_sec"))
        self._columns.add(step, at if t is None else t, seen, at, rate, kind)
        self._prints.append(_print(record, text))
        self.is_stamped = self.is_stamped and seen is not None
        return True

    def _kind_of(self, values: tuple[object, ...], loss: str) -> tuple[int, str] | None:
        """Return the index of the shared part of a record, and its text; None beyond the bounds."""
        # 1, 1.0 and true are equal, and lists have no hash: in these cases, only the text distinguishes them.
        types = tuple(map(type, values))
        key = (values, types, loss) if PLAIN.issuperset(types) else f"{values!r}{loss}"
        known = self._known.get(key)
        if known is None:
            kind, text = _kind(values, loss), f"{values!r}{loss}"
            if not self._shared.takes(kind.phase, text):
                return None
            known = self._known[key] = len(self._kinds), text
            self._kinds.append(kind)
        return known

    def lines(self) -> Lines:
        """Return the lines in order, each once."""
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
    """Return the rate in a record; None without a rate, or with an impossible one."""
    rate = number(value)
    return rate if rate is not None and abs(rate) <= HIGHEST else None


def loss_of(value: object) -> str:
    """Return the loss as lines store it: empty without one, FINITE, or the text of a value that is not finite."""
    loss = number(value)
    return "" if loss is None else FINITE if math.isfinite(loss) else str(value)


def _print(record: Mapping[str, object], kind: str) -> int:
    """Return a number that distinguishes records by everything except the time at which they were received.

    It is compared only with the numbers of records of the same step at the same time.
    """
    get = record.get
    size = len(record) - ("seen" in record)
    numbers = (get("rank"), get("step"), get("t"), get("loss"), get("images_per_sec"))
    # Almost every record has only numbers, of which no text is needed. NaN is not equal to itself.
    if READ.issuperset(record) and NUMBERS.issuperset(map(type, numbers)) and all(map(eq, numbers, numbers)):
        return hash((numbers, size, kind)) & 0xFFFFFFFF
    others = record.keys() - READ
    reported = sorted((key, repr(record[key])) for key in others) if others else []
    return hash(f"{(*numbers, size, reported)!r}{kind}") & 0xFFFFFFFF


def _finite(value: object) -> float | None:
    # Plain types come first, because each record has four of them. Larger numbers are neither a time nor a count.
    # pylint: disable-next=unidiomatic-typecheck # a bool is not a number
    given = value if type(value) is float or type(value) is int else number(value)
    return given if given is not None and -HIGHEST <= given <= HIGHEST else None


def _distinct(lines: Lines, prints: Sequence[int]) -> Lines:
    if any(after <= before for before, after in neighbours(zip(lines.step, lines.t))):
        lines = lines.picked(_without_doubles(lines, prints))
    if lines.is_stamped:
        # The marks of a phase have the number of the step before it; the rank's clock may have been set in between.
        lines = lines.ordered(lines.step, lines.at)
    return lines


def _without_doubles(lines: Lines, prints: Sequence[int]) -> list[int]:
    """Return the indexes of the lines sorted by step, clock and stamp; equal lines have the index of the first."""

    def place(index: int) -> tuple[int, float]:
        return lines.step[index], lines.t[index]

    stamps = array("d", (math.inf if math.isnan(seen) else seen for seen in lines.columns.seen))
    order = sorted_indexes(lines.step, lines.t, stamps)
    distinct: list[int] = []
    for _place, alike in groupby(order, key=place):
        first = {prints[index]: index for index in reversed([*alike])}
        distinct += reversed(first.values())
    return distinct


class Track:
    """One rank: its lines by time, its steps by number, the steps that it made again, and its usual pace."""

    def __init__(self, rank: int, written: Lines) -> None:
        self.rank, self.losses = rank, written
        self.lines = written = _without_losses(written)
        self.steps, self.repeated = split_steps(written.ordered(written.step))
        self.times, self.interval = written.at, typical_interval(written.at)
        self.first, self.last = written[0], written[-1]
        self.first_step: int | None = self.steps.step[0] if self.steps else None
        self.last_step: int | None = self.steps.step[-1] if self.steps else None
        self.kinds, self.count, self.stamps = self.losses.used(), len(written), written.stamps


def _without_losses(written: Lines) -> Lines:
    """Return the lines without losses that a framework logged after their steps: they show no progress."""
    if all(kind.mark != LOSS for kind in written.used()):
        return written
    return written.picked([at for at, kind in enumerate(written.kind) if written.kinds[kind].mark != LOSS] or [0])
