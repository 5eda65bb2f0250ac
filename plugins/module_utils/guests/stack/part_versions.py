# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Versions of the parts of a stack, compared by their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
# Packages of cuDNN say it as ``+cuda12.2`` for apt and ``.cuda12.2`` for dnf.
_BUILT_FOR_CUDA = re.compile(r"[+.]cuda(\d+\.\d+)")


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at their end: ``2.4.7-1+cuda10.0`` is (2, 4, 7)."""
    found = _NUMBERS.match(version.partition(":")[2] or version)
    if not found:
        raise ValueError(f"{version!r} is no version: it does not begin with a number.")
    parts = [int(part) for part in found[0].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def at_least(version: str, lowest: str) -> bool:
    """Whether a version is the lowest one or newer."""
    return numbers(version) >= numbers(lowest)


def series(version: str, length: int) -> str:
    """The first numbers of a version: the series 2 of ``2.15.1`` is ``2.15`` at length two."""
    parts = [*numbers(version), 0, 0, 0][:length]
    return ".".join(str(part) for part in parts)


def within(version: str, ends: Sequence[str | None]) -> bool:
    """Whether a version lies between two ends, both included at their own precision; None is no end."""
    low, high = ends
    if low is not None and not at_least(version, low):
        return False
    return high is None or numbers(series(version, high.count(".") + 1)) <= numbers(high)


def built_for_cuda(version: str) -> str | None:
    """The CUDA version in the version of a package, such as 10.0 in ``2.4.7-1+cuda10.0``."""
    found = _BUILT_FOR_CUDA.search(version)
    return found[1] if found else None


def same_cuda(first: str, second: str) -> bool:
    """Whether libraries of one CUDA serve the other: up to CUDA 10 by minor version, from 11 on by major version."""
    length = 1 if at_least(first, "11") and at_least(second, "11") else 2
    return series(first, length) == series(second, length)
