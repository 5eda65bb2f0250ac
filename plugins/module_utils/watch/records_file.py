"""The file of stamped records, which one process at a time writes, and its exchange for a new one."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

LOCK_SECONDS = 1.0
LONGEST_LINE = 1 << 16


def before(records: Path) -> Path:
    """Return the file with the earlier records, which exists if the watch began a new file."""
    return records.with_name(f"{records.name}.before")


def acquire(handle: int, patience: float = 0.0) -> bool:
    """Lock the file and return whether that succeeded; the kernel releases the lock when the process ends.

    ``watcher.is_watched`` holds the lock for a moment: for ``patience`` seconds, the attempt is repeated.
    """
    deadline = time.monotonic() + patience
    while not lock(handle, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOCK_SECONDS / 20)
    return True


def lock(handle: int, kind: int) -> bool:
    """Return whether the file could be locked at once."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class RecordsFile:
    """An open file of records, locked by this process if ``is_ours``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = _open(path)
        self.is_ours = acquire(self._handle, patience=LOCK_SECONDS)

    def __enter__(self) -> RecordsFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._handle)

    def cut_incomplete_line(self) -> bool:
        """Remove an incomplete last line, which a killed process left; return whether there are earlier records."""
        size = os.fstat(self._handle).st_size
        start = max(0, size - LONGEST_LINE)
        end = start + os.pread(self._handle, LONGEST_LINE, start).rfind(b"\n") + 1 if size else 0
        os.ftruncate(self._handle, end)
        return end > 0 or before(self._path).exists()

    def append(self, pending: bytes) -> bool:
        """Append the pending records, all or none of them; return whether the disk has room for them."""
        size, left = os.fstat(self._handle).st_size, pending
        try:
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            os.ftruncate(self._handle, size)
            return False
        return True

    def roll(self, request: Path) -> None:
        """Begin a new file if the request exists, and remove the request; the file with this name is always locked."""
        if not request.exists():
            return
        new, kept = self._path.with_name(f"{self._path.name}.new"), before(self._path)
        handle = _open(new)
        os.ftruncate(handle, 0)
        acquire(handle)
        kept.unlink(missing_ok=True)
        os.link(self._path, kept)
        new.replace(self._path)
        request.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = handle


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
