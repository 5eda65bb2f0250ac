# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The clock of a test: the time of the controller when the test started, and the time that has passed since then.

Records, moves and the journal are compared with each other. If the clock of the controller is set during a test, as NTP
may do, the system time would place a silence before or after the move that caused it.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The processes of a test inherit the difference between its time and the time since the boot of the controller.
CLOCK = "DML_VSPHERE_CLOCK"
NAME = "clock.json"
BOOT = Path("/proc/sys/kernel/random/boot_id")


def now() -> float:
    """Return the time of the test to which this process belongs, else the system time."""
    try:
        anchor = float(os.environ[CLOCK])
    except (KeyError, ValueError):
        return time.time()
    return anchor + time.monotonic() if math.isfinite(anchor) else time.time()


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """Start the clock of a test in this process, or continue it if an earlier controller started it since the boot."""
    os.environ[CLOCK] = repr(_anchor(folder, _boot()))
    try:
        yield
    finally:
        del os.environ[CLOCK]


def _boot() -> str:
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _anchor(folder: Path, boot: str) -> float:
    path = folder / NAME
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if boot and kept["boot"] == boot:
            return float(kept["anchor"])
    except (OSError, ValueError, TypeError, KeyError):
        pass
    anchor = time.time() - time.monotonic()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({"anchor": anchor, "boot": boot}, file)
    return anchor
