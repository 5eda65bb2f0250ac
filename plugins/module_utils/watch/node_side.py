# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Runs on a node: tells every whole line that is appended to the record files of a folder, and that it is alive."""

# This file is sent to the node as text: it imports nothing of ours, and any Python from 3.8 on runs it.
from __future__ import annotations

import json
import os
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

    def look(self) -> list[dict[str, object]]:
        """What was appended to each file since the last look: whole lines, those that are being written wait.

        ``old`` are lines that were there when this program looked first.
        """
        self._open_new()
        if self._at_first is None:
            self._at_first = {name: os.fstat(file).st_size for name, file in self._files.items()}
        found: list[dict[str, object]] = []
        for name, file in self._files.items():
            offset = self._offsets.get(name, 0)
            if os.fstat(file).st_size <= offset:
                continue
            data = os.pread(file, MOST_BYTES, offset)
            end = data.rfind(b"\n") + 1
            if end:
                self._offsets[name] = offset + end
                lines = data[:end].decode("utf-8", "replace").splitlines()
                is_old = offset < self._at_first.get(name, 0)
                found.append({"file": name, "offset": offset + end, "lines": lines, "old": is_old})
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
            if name not in self._files:
                self._files[name] = os.open(os.path.join(self._path, name), os.O_RDONLY)


def main() -> None:
    """Follow the folder until nobody reads any more."""
    folder = Folder(sys.argv[1], json.loads(sys.argv[2]))
    said = 0.0
    while True:
        found = folder.look()
        now = time.monotonic()
        if found or now - said >= ALIVE_SECONDS:
            said = now
            sys.stdout.write("".join(json.dumps(one) + "\n" for one in found or [{}]))
            sys.stdout.flush()
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
