# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The journal of a test: lines of JSON that one process at a time appends, each on the disk before the next step."""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
import time
from pathlib import Path
from typing import Any, Dict, NamedTuple

from ...errors import Failed, Refused
from . import observer_clock

NAME = "journal.jsonl"
# A watch locks the journal for a moment to check whether a controller holds it.
LOCK_SECONDS, RETRY_SECONDS = 1.0, 0.02
ADVICE = "restore the file from a copy, or move its folder elsewhere"

Entry = Dict[str, Any]


class JournalEnds(NamedTuple):
    """The first and the last entry of a journal; None for each if there is no entry."""

    first: Entry | None
    last: Entry | None

    @property
    def cluster(self) -> str:
        """Return the cluster of the test; empty if the first entry has none."""
        return cluster_of(self.first)

    @property
    def is_ended(self) -> bool:
        """Return whether the test has ended."""
        return self.last is not None and self.last["entry"] == "end"


def read(path: Path) -> list[Entry]:
    """Return the entries without an incomplete last line; raise Failed if another line is invalid."""
    return [_entry(path, number, line) for number, line in enumerate(_lines(path), start=1)]


def ends(path: Path) -> JournalEnds:
    """Return the first and the last entry without a check of those between."""
    lines = _lines(path)
    if not lines:
        return JournalEnds(None, None)
    return JournalEnds(_entry(path, 1, lines[0]), _entry(path, len(lines), lines[-1]))


def first(path: Path) -> Entry | None:
    """Return the first entry, also of a journal that is damaged behind it; None if that is damaged itself."""
    try:
        lines = _lines(path)
        return _entry(path, 1, lines[0]) if lines else None
    except (Failed, Refused, OSError):
        return None


def cluster_of(entry: Entry | None) -> str:
    """Return the cluster of a test from the first entry of its journal; empty if it has none."""
    settings = (entry or {}).get("settings")
    cluster = settings.get("cluster") if isinstance(settings, dict) else None
    return cluster if isinstance(cluster, str) else ""


class Journal:
    """A journal that only this process writes, until it is closed or the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        self._file = os.open(path, flags, 0o600)
        try:
            _must_be_file(path, self._file)
            self._lock()
            self.entries = read(path)
            self._cut()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._file)

    def append(self, entry: str, **content: Any) -> None:
        """Write one entry with the time, and wait until it is on the disk."""
        line = f"{json.dumps({'at': observer_clock.now(), 'entry': entry, **content})}\n".encode()
        try:
            written = os.write(self._file, line)
            os.fsync(self._file)
        except OSError as error:
            raise self._not_written(error.strerror or str(error)) from error
        if not self.entries:
            _sync(self.path.parent)
        if written != len(line):
            raise self._not_written("the disk took only a part of it")
        self.entries.append(json.loads(line))

    def _not_written(self, reason: str) -> Failed:
        return Failed(str(self.path), "write an entry", reason, "free some space and run the playbook again")

    def _lock(self) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                # The kernel releases the lock when the process ends, however that happens.
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    reason = "another process writes it: the test is being carried out just now"
                    raise Refused(
                        str(self.path), "write the journal", reason, "wait for the end of that run"
                    ) from error
            time.sleep(RETRY_SECONDS)

    def _cut(self) -> None:
        """Remove an incomplete last line, which a killed process left: no entry may be appended to it."""
        os.ftruncate(self._file, self.path.read_bytes().rfind(b"\n") + 1)


def _lines(path: Path) -> list[bytes]:
    """Return the complete lines of a regular file; a FIFO in its place would block forever."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        _must_be_file(path, file.fileno())
        return file.read().split(b"\n")[:-1]


def _must_be_file(path: Path, handle: int) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise Refused(str(path), "read the journal", "it is not a regular file", "remove it, or name another folder")


def _sync(folder: Path) -> None:
    """Write the names in a folder to the disk: without it, a new file can get lost."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        entry = json.loads(line)
        made = {**entry, "at": float(entry["at"]), "entry": str(entry["entry"])}
        if not math.isfinite(made["at"]):
            raise ValueError(f"time {made['at']}")
        return made
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        reason = f"line {number} is not a valid entry ({error!r}): the file was changed or damaged"
        raise Failed(str(path), "read the journal", reason, ADVICE) from error
