"""A received step record in checked types; a value of another type is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ..continuity.limits import MOST_RANKS
from ..core.names import printable

HIGHEST = 1 << 53
MOST_OF_A_SOURCE = 120


class ReceivedRecord(NamedTuple):
    """A step of a rank, or with ``mark`` the loss of the last step, or the begin or the end of a phase.

    The loss may be NaN. ``group`` is the number of ranks in the process group of the rank if it lacks ranks.

    ``by`` is the source of the steps of a script that does not record them, ``others`` the number of further ones.
    ``not_finite`` is the step at which the gradients of the rank were not finite, and ``checked_every`` how often they
    are checked.
    """

    rank: int
    step: int
    seen: float
    size: int
    stride: int
    host: str
    images_per_sec: float | None
    loss: float | None
    phase: str
    mark: str | None
    by: str = ""
    others: int = 0
    not_finite: int | None = None
    checked_every: int = 1
    group: int | None = None


def received_record(record: Mapping[str, object]) -> ReceivedRecord | None:
    """Return the record; None if it lacks a rank, a step or the time at which the observer received it."""
    rank, step, seen = whole(record.get("rank")), whole(record.get("step")), finite(record.get("seen"))
    if rank is None or rank >= MOST_RANKS or step is None or seen is None:
        return None
    size, mark = whole(record.get("size")), record.get("mark")
    rate = finite(record.get("images_per_sec"))
    return ReceivedRecord(
        rank=rank,
        step=step,
        seen=seen,
        size=size if size is not None and size <= MOST_RANKS else 0,
        stride=max(1, whole(record.get("stride")) or 1),
        host=_text(record.get("host")),
        images_per_sec=rate if rate is not None and rate > 0 else None,
        loss=_loss(record.get("loss")),
        phase=_text(record.get("phase")),
        mark=_text(mark) if "mark" in record else None,
        by=printable(_text(record.get("by"))[:MOST_OF_A_SOURCE]),
        others=whole(record.get("others")) or 0,
        not_finite=whole(record.get("not_finite")),
        checked_every=whole(record.get("checked_every")) or 1,
        group=whole(record.get("group")),
    )


def whole(value: object) -> int | None:
    """Return a whole number of 0 or more; None for anything else."""
    number = finite(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def finite(value: object) -> float | None:
    """Return a finite number up to the limit of exact floats; None for anything else."""
    # pylint: disable-next=unidiomatic-typecheck # True and False are not numbers here
    if type(value) not in (int, float) or not -HIGHEST <= value <= HIGHEST:  # type: ignore[operator]
        return None
    return None if math.isnan(value) else value  # type: ignore[arg-type,return-value]


def _loss(value: object) -> float | None:
    is_spelled = isinstance(value, str) and value.lower() in ("nan", "inf", "-inf")
    return float(value) if is_spelled or isinstance(value, float) else finite(value)  # type: ignore[arg-type]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
