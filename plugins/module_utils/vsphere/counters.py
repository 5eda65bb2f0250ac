"""Performance counters of a vCenter: their definitions, their history, and samples of many objects in one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .faults import translating_faults
from .properties import read_many
from .sdk import ApiObject, vim
from .session import Session

REALTIME_SECONDS, REALTIME_HOURS = 20, 1
# vCenter refuses historical queries for more counters than this (config.vpxd.stats.maxQueryMetrics).
MOST_AT_ONCE = 64
_EVERY_INSTANCE = "*"


@dataclass(frozen=True)
class Counter:
    """One counter: its number on this server, and the lowest statistics level at which vCenter keeps its history."""

    key: int
    level: int


@dataclass(frozen=True)
class Interval:
    """Stored samples: their interval, the hours that they reach back, and their statistics level."""

    seconds: int
    hours: float
    level: int


@dataclass(frozen=True)
class Catalogue:
    """The counters and the history of a vCenter."""

    counters: Mapping[str, Counter]
    history: tuple[Interval, ...]


@dataclass(frozen=True)
class Series:
    """The samples of one counter of one instance, in the counter's unit, without missing ones."""

    object_id: str
    counter: str
    instance: str
    values: tuple[int, ...]


def catalogue(session: Session, group: str) -> Catalogue:
    """Return the averages of a group of counters by name, and the historical intervals that are enabled."""
    paths = ("perfCounter", "historicalInterval")
    (values,) = read_many(session, [session.content.perfManager], paths).values()
    named = {
        str(one.nameInfo.key): Counter(one.key, one.perDeviceLevel or one.level or 1)
        for one in values.get("perfCounter") or []
        if one.groupInfo.key == group and one.rollupType == "average"
    }
    enabled = (one for one in values.get("historicalInterval") or [] if one.enabled)
    kept = [Interval(one.samplingPeriod, one.length / 3600, one.level or 1) for one in enabled]
    return Catalogue(named, tuple(sorted(kept, key=lambda one: one.seconds)))


def series(
    session: Session, sizes: Mapping[object, int], counters: Mapping[str, Counter], seconds: int, since: datetime
) -> list[Series]:
    """Return the samples since a time on the server's clock; ``sizes`` is the number of instances of each object."""
    names = {counter.key: name for name, counter in counters.items()}
    desired = [vim.PerformanceManager.MetricId(counterId=key, instance=_EVERY_INSTANCE) for key in names]
    found = list[Series]()
    for some in _portions(sizes, len(names)):
        queries = [
            vim.PerformanceManager.QuerySpec(entity=ref, metricId=desired, intervalId=seconds, startTime=since)
            for ref in some
        ]
        with translating_faults(session.server, f"read performance counters of {len(some)} objects"):
            answers = session.content.perfManager.QueryPerf(queries)
        found += [_series(answer, one, names) for answer in answers or [] for one in answer.value or []]
    return found


def choose(known: Catalogue, counter: Counter, hours: float) -> tuple[int, float, str]:
    """Return the interval in seconds, the hours that it covers, and the reason if these are fewer than requested."""
    if hours <= REALTIME_HOURS:
        return REALTIME_SECONDS, hours, ""
    long_enough = [one for one in known.history if one.hours >= hours]
    kept = [one for one in long_enough if one.level >= counter.level]
    if kept:
        return kept[0].seconds, hours, ""
    if not long_enough:
        why = f"no interval of this vCenter reaches back {hours:g} hours"
    else:
        why = (
            f"this vCenter keeps {long_enough[0].seconds} s samples at statistics level {long_enough[0].level}, "
            f"these counters require level {counter.level}"
        )
    return REALTIME_SECONDS, REALTIME_HOURS, f"{why}; the hosts themselves keep only the last hour"


def ago(now: datetime, hours: float) -> datetime:
    """Return the time that is a number of hours before a moment."""
    return now - timedelta(hours=hours)


def _portions(sizes: Mapping[object, int], counters: int) -> Iterator[Sequence[object]]:
    """Yield the objects in portions that one query may contain."""
    portion, size = list[Any](), 0
    for ref, instances in sizes.items():
        more = instances * counters
        if portion and size + more > MOST_AT_ONCE:
            yield portion
            portion, size = [], 0
        portion.append(ref)
        size += more
    if portion:
        yield portion


def _series(answer: ApiObject, one: ApiObject, names: Mapping[int, str]) -> Series:
    taken = tuple(int(value) for value in one.value or [] if value >= 0)
    return Series(answer.entity._moId, names[one.id.counterId], str(one.id.instance or ""), taken)
