"""A process that gets the number of a process that has ended, as happens on a machine that runs for long."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LAST = Path("/proc/sys/kernel/ns_last_pid")
TRIES = 200
TICK_SECONDS = 0.01


@contextmanager
def reused(pid: int, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command that gets this process number, which must be free, and end it afterwards."""
    if not os.access(LAST, os.W_OK) or os.geteuid():
        pytest.skip("only root may choose the number of the next process")
    # The kernel reports the start of a process in hundredths of a second, and a number returns much later than that.
    time.sleep(2 * TICK_SECONDS)
    for _try in range(TRIES):
        LAST.write_text(str(pid - 1))
        process = subprocess.Popen(command or ("sleep", "600"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        if process.pid == pid:
            break
        process.kill()
        process.wait()
    else:
        pytest.skip(f"other programs took the number {pid}")
    try:
        yield process
    finally:
        process.kill()
        process.wait()
