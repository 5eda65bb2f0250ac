"""The limits of a continuity verdict with their defaults, the shape of a breach, and short lists of breaches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

TRAIN = "train"
# The mark of a record with the loss that a framework logged after the step.
LOSS = "loss"
MAX_GAP_S = 120.0
RESUME_DEADLINE_S = 120.0
# Sums of larger numbers are inexact, and their differences may not even be finite.
HIGHEST = 1 << 53
# No job has more ranks: records of further ranks would only use memory.
MOST_RANKS = 1 << 12
KNOWN = ("max_gap_s", "phases", "warmup_steps", "resume_deadline_s", "min_throughput_ratio")
OF_ONE_KIND = 20
LISTED = 1000


class Breach(NamedTuple):
    """One reason why a job is not continuous."""

    kind: str
    rank: int | None
    step: int | None
    at: float | None
    detail: str


@dataclass(frozen=True)
class Limits:
    """The limits of a verdict, each with a value."""

    max_gap_s: float
    phases: Mapping[str, float]
    warmup_steps: int
    resume_deadline_s: float
    min_throughput_ratio: float | None
    unknown: tuple[str, ...]

    def gap(self, phase: str) -> float:
        """Return the longest silence allowed in a phase."""
        return self.phases.get(phase, self.max_gap_s)


def read_limits(limits: Mapping[str, object]) -> Limits:
    """Return the limits; an absent or null limit has its default."""
    phases = {**_by_phase(limits.get("max_gap_s")), **_by_phase(limits.get("phases"))}
    general = limits.get("max_gap_s")
    if isinstance(general, Mapping):
        general = general.get(TRAIN)
    ratio = limits.get("min_throughput_ratio")
    return Limits(
        max_gap_s=_seconds(general, "max_gap_s", MAX_GAP_S),
        phases=phases,
        warmup_steps=int(_finite(limits.get("warmup_steps"), "warmup_steps", 0)),
        resume_deadline_s=_seconds(limits.get("resume_deadline_s"), "resume_deadline_s", RESUME_DEADLINE_S),
        min_throughput_ratio=None if ratio is None else _finite(ratio, "min_throughput_ratio", 0),
        unknown=tuple(str(key) for key in limits if key not in KNOWN),
    )


def number(value: object) -> float | None:
    """Return the number in a record, including text, NaN and infinity; None without a number."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def _by_phase(value: object) -> dict[str, float]:
    if not isinstance(value, Mapping):
        return {}
    return {str(phase): _seconds(limit, f"the limit of phase {phase}", MAX_GAP_S) for phase, limit in value.items()}


def _finite(value: object, name: str, default: float) -> float:
    given = _seconds(value, name, default)
    if given > HIGHEST:
        raise ValueError(f"{name} is {given:g}: expected a number from 0 to {HIGHEST}.")
    return given


def _seconds(value: object, name: str, default: float) -> float:
    if value is None:
        return default
    given = number(value)
    if given is None or math.isnan(given) or given < 0:
        shown = "out of range" if isinstance(value, int) and abs(value) > HIGHEST else repr(value)
        raise ValueError(f"{name} is {shown}: expected a number of 0 or more.")
    return given


def bounded(breaches: Iterable[Breach]) -> Iterator[Breach]:
    """Yield one rank's first breaches of each kind, and the last one with the number of breaches between."""
    seen: Counter[str] = Counter()
    last: dict[str, Breach] = {}
    for breach in breaches:
        seen[breach.kind] += 1
        if seen[breach.kind] <= OF_ONE_KIND:
            yield breach
        else:
            last[breach.kind] = breach
    for kind, breach in last.items():
        between = seen[kind] - OF_ONE_KIND - 1
        yield breach._replace(detail=f"{breach.detail} ({between:,} similar ones before it are not listed)")


def in_order(breaches: Iterable[Breach]) -> list[Breach]:
    """Return the breaches sorted by time; breaches without a time come last."""
    return sorted(breaches, key=lambda breach: (math.inf if breach.at is None else breach.at, breach.kind))


def left_out(ordered: Sequence[Breach]) -> Iterator[str]:
    """Yield the sentence about the breaches that are not listed."""
    if len(ordered) > LISTED:
        kinds = Counter(breach.kind for breach in ordered[LISTED:])
        counts = ", ".join(f"{kind}: {count:,}" for kind, count in sorted(kinds.items()))
        yield f"the first {LISTED:,} of {len(ordered):,} breaches are listed; omitted: {counts}"


def listed(sentences: Sequence[str]) -> list[str]:
    """Return the first sentences, and the number of the others."""
    more = len(sentences) - LISTED
    return [*sentences[:LISTED], f"{more:,} more are not listed"] if more > 0 else list(sentences)
