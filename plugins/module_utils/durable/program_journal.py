"""The journal of a program: one line of JSON for each value, on the disk before the next effect, by one process."""

from __future__ import annotations

import fcntl
import json
import math
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Dict, NamedTuple

from ..errors import CollectionError, Failed, Refused
from .program import END

NAME = "journal.jsonl"
LOCK_SECONDS, RETRY_SECONDS = 1.0, 0.02
ADVICE = "restore the file from a copy, or move its folder elsewhere"
EARLIER = ("read the journal", "it belongs to an earlier version of the collection", "move its folder elsewhere")

Entry = Dict[str, Any]


class JournalEnds(NamedTuple):
    """The value of the first entry of a journal, None if there is no entry; and whether the program has ended."""

    start: Any
    is_ended: bool


def read(path: Path) -> list[Entry]:
    """Return the entries without an incomplete last line; raise Failed if another line is invalid."""
    return [_entry(path, number, line) for number, line in enumerate(_lines(path), start=1)]


def ends(path: Path) -> JournalEnds:
    """Return the first and the last entry without a check of those between."""
    lines = _lines(path)
    if not lines:
        return JournalEnds(None, False)
    first, last = _entry(path, 1, lines[0]), _entry(path, len(lines), lines[-1])
    return JournalEnds(first["value"], last["key"] == END)


def start_of(path: Path) -> object:
    """Return the value of the first entry even if a later line is damaged; None if that entry is missing or damaged."""
    try:
        lines = _lines(path)
        return _entry(path, 1, lines[0])["value"] if lines else None
    except (CollectionError, OSError):
        return None


class FileJournal:
    """A journal that only this process writes, until it is closed or the process ends."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path, self._now = path, now
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        self._file = os.open(path, flags, 0o600)
        try:
            _must_be_file(path, self._file)
            self._lock()
            self.values: dict[str, Any] = {entry["key"]: entry["value"] for entry in read(path)}
            # A killed process may leave an incomplete last line, to which no entry may be appended.
            os.ftruncate(self._file, path.read_bytes().rfind(b"\n") + 1)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> FileJournal:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._file)

    def write(self, key: str, value: object) -> Any:
        """Write a value with the time, wait until it is on the disk, and return it as a later controller reads it."""
        text = json.dumps({"at": self._now(), "key": key, "value": value})
        line, before = f"{text}\n".encode(), os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("the disk took only a part of it")
            os.fsync(self._file)
            if not self.values:
                _sync(self.path.parent)
        except OSError as error:
            # The entries that follow, such as those of releases, need a line each.
            os.ftruncate(self._file, before)
            reason, remedy = error.strerror or str(error), "free some space and run the playbook again"
            raise Failed(str(self.path), "write an entry", reason, remedy) from error
        self.values[key] = json.loads(text)["value"]
        return self.values[key]

    def _lock(self) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                # The kernel releases the lock when the process ends, however that happens.
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    reason = "another process writes it, because its run is in progress"
                    raise Refused(str(self.path), "write the journal", reason, "wait for that run to end") from error
            time.sleep(RETRY_SECONDS)


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
        if "entry" in entry and "key" not in entry:
            raise Refused(str(path), *EARLIER)
        made = {"at": float(entry["at"]), "key": str(entry["key"]), "value": entry["value"]}
        if not math.isfinite(made["at"]):
            raise ValueError(f"time {made['at']}")
        return made
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        reason = f"line {number} is not a valid entry ({error!r}): the file was changed or damaged"
        raise Failed(str(path), "read the journal", reason, ADVICE) from error
