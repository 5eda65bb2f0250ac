"""The 64-bit memory window that a virtual machine needs for its GPUs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

# Gigabytes by vendor:device, for GPUs whose name does not contain the size.
KNOWN = {
    "10de:1db1": 16,
    "10de:1db4": 16,
    "10de:1db5": 32,
    "10de:1db6": 32,
    "10de:1eb8": 16,
    "10de:20b0": 40,
    "10de:20b2": 80,
    "10de:20b5": 80,
    "10de:20b7": 24,
    "10de:20f1": 40,
    "10de:2235": 48,
    "10de:2330": 80,
    "10de:2331": 80,
    "10de:26b5": 48,
    "10de:26b9": 48,
    "10de:27b8": 24,
}
_IN_NAME = re.compile(r"(?<!\d)(\d+)\s*GB", re.IGNORECASE)


def window_gb(gpus_gb: Iterable[float]) -> int:
    """Return the memory of all GPUs, rounded up to a power of two and doubled; 0 without GPUs."""
    total = sum(math.ceil(size) for size in gpus_gb)
    return 2 ** math.ceil(math.log2(total)) * 2 if total else 0


def memory_gb(kind: str, name: str = "") -> int | None:
    """Return the memory of a GPU from its name, otherwise from its vendor:device; None if both are unknown."""
    match = _IN_NAME.search(name)
    return int(match[1]) if match else KNOWN.get(kind)
