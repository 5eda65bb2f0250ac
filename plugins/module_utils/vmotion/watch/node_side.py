# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Runs on a node: tells every whole line that is appended to the record files of a folder, and that it is alive."""

# This file is sent to the node as text: it imports nothing of ours, and any Python from 3.8 on runs it.
from __future__ import annotations

import json
import os
import stat
import sys
import time

# Each look that finds something wakes four processes on its way over ssh: bench/monitor/run says what that may cost.
LOOK_SECONDS = 0.5
ALIVE_SECONDS = 1.0
MOST_BYTES = 1 << 20


class Folder:
    """The record files of a folder, kept open: a look that finds nothing new must cost next to nothing."""

    def __init__(self, path: str, offsets: dict[str, int]) -> None:
        self._path, self._offsets = path, offsets
        self._files: dict[str, int] = {}
        self._changed = -1
        self._at_first: dict[str, int] | None = None
        self._closed: dict[str, str] = {}
        self._faults: dict[str, str] = {}

    def look(self) -> list[dict[str, object]]:
        """What was appended to each file since the last look: whole lines, those that are being written wait.

        ``old`` are lines that were there when this program looked first.
        """
        self._open_new()
        if self._at_first is None:
            self._at_first = {name: os.fstat(file).st_size for name, file in self._files.items()}
        found: list[dict[str, object]] = []
        for name, file in self._files.items():
            offset, size = self._offsets.get(name, 0), os.fstat(file).st_size
            if size < offset:
                offset = self._offsets[name] = 0  # it was begun anew: what comes twice counts once
            if size == offset:
                continue
            data = os.pread(file, MOST_BYTES, offset)
            end = data.rfind(b"\n") + 1
            if end or len(data) == MOST_BYTES:
                # A line that is longer than all that is read at once is no record: it must not hide those behind it.
                end = end or len(data)
                self._offsets[name] = offset + end
                # JSON may hold what Python takes for ends of lines, and files of records do not.
                lines = data[:end].decode("utf-8", "replace").split("\n")
                is_old = offset < self._at_first.get(name, 0)
                lines = lines if lines[-1] else lines[:-1]
                found.append({"file": name, "offset": offset + end, "lines": lines, "old": is_old})
        return found + self._take_faults()

    def _take_faults(self) -> list[dict[str, object]]:
        """The files that could not be opened since the last look, and why."""
        found: list[dict[str, object]] = [{"file": name, "error": said} for name, said in self._faults.items()]
        self._faults = {}
        return found

    def _open_new(self) -> None:
        try:
            changed = os.stat(self._path).st_mtime_ns
            if changed == self._changed:
                return
            names = [name for name in sorted(os.listdir(self._path)) if name.endswith(".jsonl")]
        except OSError:  # the job has not made it yet
            return
        # A file may come in the same moment as the one before: only an old time is worth to be kept.
        self._changed = changed if time.time_ns() - changed > 10**9 else -1
        for name in names:
            if name not in self._files and name not in self._closed:
                self._open(name)

    def _open(self, name: str) -> None:
        """Open a file of records; one that is none must not hide the others."""
        try:
            # Of a pipe without a writer nobody would come back.
            file = os.open(os.path.join(self._path, name), os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            self._closed[name] = self._faults[name] = str(error.strerror)
            return
        if stat.S_ISREG(os.fstat(file).st_mode):
            self._files[name] = file
        else:
            os.close(file)
            self._closed[name] = self._faults[name] = "it is no file"


def main() -> None:
    """Follow the folder until nobody reads any more; ``mark`` tells its lines from what else the connection says."""
    folder, mark = Folder(sys.argv[1], json.loads(sys.argv[2])), sys.argv[3]
    said = 0.0
    while True:
        found = folder.look()
        now = time.monotonic()
        if found or now - said >= ALIVE_SECONDS:
            said = now
            sys.stdout.write("".join(f"{mark}{json.dumps(one)}\n" for one in found or [{}]))
            sys.stdout.flush()
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
