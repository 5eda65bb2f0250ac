"""Versions as numbers, for comparison."""

from __future__ import annotations

import re

# A limited number of ASCII digits: other scripts have digits too, and an endless number is not a version.
DIGITS = re.compile(r"[0-9]{1,9}")
ROCE_V1 = "rocev1"
_WITHOUT_ROCE_V1 = (9,)


def numbers(version: object) -> tuple[int, ...]:
    """Return a version of vCenter or ESXi as comparable numbers: ``8.0.3`` is (8, 0, 3), a missing version is ()."""
    return tuple(int(part) for part in str(version or "").split(".") if DIGITS.fullmatch(part))


def has_roce_v1(version: object) -> bool:
    """Return whether hosts of a version support RoCE version 1, which 9.0 removed; unknown versions are assumed to."""
    return numbers(version) < _WITHOUT_ROCE_V1
