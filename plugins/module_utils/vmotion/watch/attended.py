# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Whether anybody still wants what a watch collects: somebody holds a file locked, or did so a while ago."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

LOOK_SECONDS = 1.0


class Attended:
    """True while a process has the file locked, and for some seconds after, in which another may take its place.

    The kernel gives the lock of a process back when that ends, however it ends.
    """

    def __init__(self, file: Path, alone: float) -> None:
        self._file, self._alone = file, alone
        self._looked = self._held = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._held = now if _is_locked(self._file) else self._held
        return now - self._held <= self._alone


def _is_locked(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDONLY)
    except OSError:  # nobody can hold what is not there
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)  # with it goes the lock, if it was got
    return False
