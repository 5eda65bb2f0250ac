"""A file of JSON lines that another process appends to, read as it grows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import Failed

LOOK_SECONDS = 0.2
LONGEST_LINE = 1 << 20


class GrowingFile:
    """Reads the complete lines that are new since the last call; a file that does not exist yet is empty.

    With ``last``, the first call begins that number of bytes before the end of the file. Lines that are not a JSON
    object, such as torn ones, are counted in ``noise`` and left out.
    """

    noise = 0

    def __init__(self, path: Path, last: int | None = None) -> None:
        self._path, self._last, self._rest = path, last, b""
        self._file: BinaryIO | None = None

    def __enter__(self) -> GrowingFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._file:
            self._file.close()

    def new_records(self) -> Iterator[dict[str, Any]]:
        """Yield the records that were appended since the last call."""
        if self._file is None:
            if not self._path.exists():
                return
            self._file = self._opened()
            self._begin(self._file)
        while True:
            line = self._file.readline(LONGEST_LINE)
            self._rest += line
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_LINE:
                    self._rest = b"-"  # not a valid record, whatever follows
                    continue
                return
            complete, self._rest = self._rest, b""
            record = _record(complete)
            if record is not None:
                yield record
            elif complete.strip():
                self.noise += 1

    def _opened(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            reason, remedy = str(error.strerror), "name the file of records of a job"
            raise Failed(str(self._path), "read its records", reason, remedy) from error

    def _begin(self, file: BinaryIO) -> None:
        size = file.seek(0, os.SEEK_END)
        skipped = 0 if self._last is None else max(0, size - self._last)
        file.seek(skipped)
        if skipped:
            file.readline()  # the end of a line that began earlier

    def wait(self) -> None:
        """Wait until another call is worthwhile."""
        time.sleep(LOOK_SECONDS)


def _record(line: bytes) -> dict[str, object] | None:
    """Return the JSON object in a line, or None."""
    try:
        # Without the decoding, json looks for the encoding of each line.
        record = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
