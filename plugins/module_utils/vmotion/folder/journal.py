# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The journal of a test: lines of JSON that one process at a time appends, each on the disk before the next step."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from ...errors import Failed, Refused

NAME = "journal.jsonl"
# A watch looks for a moment whether somebody holds the journal.
OWN_SECONDS, TRY_SECONDS = 1.0, 0.02


def read(path: Path) -> list[dict[str, Any]]:
    """The entries; a last line that was cut off while it was written is none, any other damage is told."""
    lines = path.read_bytes().split(b"\n")[:-1]
    return [_entry(path, number, line) for number, line in enumerate(lines, start=1)]


def ends(path: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The first and the last entry, without a look at those between; None for a journal without any."""
    lines = path.read_bytes().split(b"\n")[:-1]
    if not lines:
        return None, None
    return _entry(path, 1, lines[0]), _entry(path, len(lines), lines[-1])


class Journal:
    """A journal that this process alone writes, until it is closed or the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            self._own()
            self.entries = read(path)
            self._cut()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._file)

    def append(self, entry: str, **told: Any) -> None:
        """Write one entry with the time, and wait until the disk has it."""
        made = {"at": time.time(), "entry": entry, **told}
        line = f"{json.dumps(made)}\n".encode()
        written = os.write(self._file, line)
        os.fsync(self._file)
        if not self.entries:
            _sync(self.path.parent)
        if written != len(line):
            raise Failed(str(self.path), "write an entry", "the disk took only a part of it", "make room and run again")
        self.entries.append(json.loads(line))

    def _own(self) -> None:
        deadline = time.monotonic() + OWN_SECONDS
        while True:
            try:
                # The kernel gives the lock back when the process ends, however that happens.
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    said = "another process writes it: the test is being carried out just now"
                    raise Refused(str(self.path), "write the journal", said, "wait for the end of that run") from error
            time.sleep(TRY_SECONDS)

    def _cut(self) -> None:
        """Drop what a process that was killed had written of its last line: no entry may be glued to it."""
        whole = self.path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._file, whole)


def _sync(folder: Path) -> None:
    """Have the disk know the names in a folder: a new file is lost without."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        return {"at": float(entry["at"]), "entry": str(entry["entry"]), **entry}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        said = f"line {number} is no entry ({error!r}): the file was changed or damaged"
        raise Failed(str(path), "read the journal", said, "restore the file from a copy") from error
