"""Runs on a node: sends a signal to each rank there that its last record identifies, and to no other process."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

TAIL_BYTES = 1 << 16
NAME = re.compile(r"rank(\d{1,7})\.jsonl\Z")


def last_record(path: str) -> dict[str, object]:
    """Return the newest complete record of a rank, whose user may have replaced the file."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as records:
            records.seek(max(0, os.fstat(records.fileno()).st_size - TAIL_BYTES))
            lines = records.read(TAIL_BYTES).split(b"\n")[:-1]
    except OSError:
        return {}
    return last_object(lines) or {}


def last_object(lines: Sequence[str | bytes]) -> dict[str, Any] | None:
    """Return the last line that is a JSON object; others may be damaged, or come from another program."""
    for line in reversed(lines):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            return content
    return None


def starts() -> dict[tuple[int, int], int]:
    """Return the processes of this machine by their start and by their number, which in a container is its own."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as stat, open(f"/proc/{name}/status") as status:
                fields = stat.read().rsplit(b")", 1)[1].split()
                numbers = next((line.split()[1:] for line in status if line.startswith("NSpid:")), [name])
        except (OSError, IndexError):
            continue
        if fields[0] not in (b"Z", b"X"):
            found[int(fields[19]), int(numbers[-1])] = int(name)
    return found


def ranks_in(folder: str) -> tuple[dict[str, int], int]:
    """Return the process of each rank of the folder that runs on this machine, and the size of their job."""
    with open("/proc/sys/kernel/random/boot_id") as boot:
        boot_id = boot.read().strip()
    running, found, size = starts(), {}, 0
    for name in os.listdir(folder):
        match = NAME.match(name)
        last = last_record(os.path.join(folder, name)) if match else {}
        start, number = last.get("start"), last.get("pid")
        if match and isinstance(start, int) and isinstance(number, int) and last.get("boot_id") == boot_id:
            process = running.get((start, number))
            if process:
                found[match.group(1)] = process
                each = last.get("size")
                size = max(size, each) if isinstance(each, int) else size
    return found, size


if __name__ == "__main__":
    ranks, number_of_ranks = ranks_in(sys.argv[1])
    for process in ranks.values() if sys.argv[2] else ():
        os.kill(process, getattr(signal, f"SIG{sys.argv[2]}"))
    sys.stdout.write(json.dumps({"ranks": sorted(ranks, key=int), "size": number_of_ranks}) + "\n")
