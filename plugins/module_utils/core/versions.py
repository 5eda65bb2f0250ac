# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Versions, as numbers that can be compared."""

from __future__ import annotations

import re
from typing import Any

# Digits as versions have them: other scripts have digits too, and a number of thousands of them is none.
DIGITS = re.compile(r"[0-9]{1,9}")


def numbers(version: Any) -> tuple[int, ...]:
    """A version of vCenter or ESXi as numbers, to compare: ``8.0.3`` is (8, 0, 3), and none is ()."""
    return tuple(int(part) for part in str(version or "").split(".") if DIGITS.fullmatch(part))
