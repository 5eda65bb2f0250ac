"""Versions of the parts of a stack, compared by their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
# Packages of cuDNN contain ``+cuda12.2`` for apt and ``.cuda12.2`` for dnf.
_BUILT_FOR_CUDA = re.compile(r"[+.]cuda(\d+\.\d+)")


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, without zeros at their end: ``2.4.7-1+cuda10.0`` is (2, 4, 7)."""
    match = _NUMBERS.match(version.partition(":")[2] or version)
    if not match:
        raise ValueError(f"{version!r} is not a version: it does not begin with a number.")
    parts = [int(part) for part in match[0].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def at_least(version: str, lowest: str) -> bool:
    return numbers(version) >= numbers(lowest)


def series(version: str, length: int) -> str:
    """Return the first numbers of a version: the series 2 of ``2.15.1`` is ``2.15`` at length two."""
    parts = [*numbers(version), 0, 0, 0][:length]
    return ".".join(str(part) for part in parts)


def within(version: str, ends: Sequence[str | None]) -> bool:
    """Return whether a version is between two ends, inclusive at the precision of each end; None means no limit."""
    low, high = ends
    if low is not None and not at_least(version, low):
        return False
    return high is None or numbers(series(version, high.count(".") + 1)) <= numbers(high)


def built_for_cuda(version: str) -> str | None:
    """Return the CUDA version in the version of a package, such as 10.0 in ``2.4.7-1+cuda10.0``."""
    match = _BUILT_FOR_CUDA.search(version)
    return match[1] if match else None


def same_cuda(first: str, second: str) -> bool:
    """Return whether libraries for one CUDA work with another: same minor version up to 10, same major from 11."""
    length = 1 if at_least(first, "11") and at_least(second, "11") else 2
    return series(first, length) == series(second, length)
