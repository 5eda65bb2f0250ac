"""The clock of a run: the time of the controller when the run started, and the time that has passed since then.

Records, moves and the journal are compared with each other. If the clock of the controller is set during a run, as NTP
may do, the system time would place a silence before or after the move that caused it, and a wait would be too short or
too long.

While the controller sleeps, such as a laptop, the clock of a window goes on, because its limits are times of day. That
of a training stands still, because its controller cannot have seen steps of the job meanwhile.
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
AWAKE = " awake"
NAME = "clock.json"
BOOT = Path("/proc/sys/kernel/random/boot_id")


def now() -> float:
    """Return the time of the run to which this process belongs, else the system time."""
    try:
        anchor = float(os.environ[CLOCK].removesuffix(AWAKE))
    except (KeyError, ValueError):
        return time.time()
    return anchor + elapsed() if math.isfinite(anchor) else time.time()


def elapsed() -> float:
    """Return the seconds of a clock that cannot be set; it counts sleep, unless the program called ``awake``."""
    kind = getattr(time, "CLOCK_BOOTTIME", None)  # only Linux has it; the monotonic clock stops during sleep
    if kind is None or os.environ.get(CLOCK, "").endswith(AWAKE):
        return time.monotonic()
    return time.clock_gettime(kind)


def slept() -> float:
    """Return the seconds that the controller has slept since its boot; 0 if the clock does not count them."""
    return elapsed() - time.monotonic()


@contextmanager
def running(folder: Path | None = None) -> Iterator[None]:
    """Start the clock of a run in this process, or continue that of its folder, which was started since the boot."""
    with _clock(repr(_started() if folder is None else _anchor(folder, _boot()))):
        yield


@contextmanager
def awake() -> Iterator[None]:
    """Start a clock in this process that stands still while the controller sleeps."""
    with _clock(repr(time.time() - time.monotonic()) + AWAKE):
        yield


@contextmanager
def _clock(value: str) -> Iterator[None]:
    os.environ[CLOCK] = value
    try:
        yield
    finally:
        del os.environ[CLOCK]


def _started() -> float:
    return time.time() - elapsed()


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
    anchor = _started()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({"anchor": anchor, "boot": boot}, file)
    return anchor
