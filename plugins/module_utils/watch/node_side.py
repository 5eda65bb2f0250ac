# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Runs on a node: tells every whole line that is appended to the record files of a folder, and that it is alive."""

# This file is sent to the node as text: it imports nothing of ours, and any Python from 3.8 on runs it.
from __future__ import annotations

import json
import os
import sys
import time

LOOK_SECONDS = 0.1
ALIVE_SECONDS = 1.0
MOST_BYTES = 1 << 20


def new_lines(path: str, offset: int) -> tuple[list[str], int]:
    """The whole lines after the offset, and where they end; a line that is being written waits."""
    with open(path, "rb") as records:
        records.seek(offset)
        data = records.read(MOST_BYTES)
    end = data.rfind(b"\n") + 1
    return data[:end].decode("utf-8", "replace").splitlines(), offset + end


def look(folder: str, offsets: dict[str, int]) -> list[dict[str, object]]:
    """What was appended to each file since its offset, which is moved on."""
    try:
        files = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".jsonl"))
    except OSError:  # the job has not made it yet
        return []
    found: list[dict[str, object]] = []
    for name in files:
        path = os.path.join(folder, name)
        if os.stat(path).st_size <= offsets.get(name, 0):
            continue
        lines, offsets[name] = new_lines(path, offsets.get(name, 0))
        if lines:
            found.append({"file": name, "offset": offsets[name], "lines": lines})
    return found


def main() -> None:
    """Follow the folder until nobody reads any more."""
    folder, offsets = sys.argv[1], json.loads(sys.argv[2])
    said = 0.0
    while True:
        found = look(folder, offsets)
        now = time.monotonic()
        if found or now - said >= ALIVE_SECONDS:
            said = now
            sys.stdout.write("".join(json.dumps(one) + "\n" for one in found or [{}]))
            sys.stdout.flush()
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    main()
