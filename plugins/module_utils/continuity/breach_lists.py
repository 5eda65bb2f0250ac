"""Bounds for lists of breaches: a log in which every record is a breach must fill neither memory nor a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .limits import Breach

OF_ONE_KIND = 20
LISTED = 1000


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
