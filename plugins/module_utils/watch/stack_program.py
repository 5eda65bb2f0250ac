"""Runs on a node: has each rank of a job there write the stack of its main thread, and prints the stacks."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

# As dml_steps.py registers it.
WHERE = signal.SIGRTMIN + 11
WAIT_SECONDS, LOOK_SECONDS = 3.0, 0.1
MOST_BYTES = 1 << 16
NAME = re.compile(r"rank(\d{1,7})\.stack\Z")


def ranks_of(folder: str) -> dict[str, tuple[str, int, str]]:
    """Return the file, the process and the host of each rank of the folder that runs on this machine."""
    found = {}
    for name in os.listdir(folder):
        match = NAME.match(name)
        words = read(os.path.join(folder, name)).partition("\n")[0].split() if match else []
        if match and len(words) == 4 and words[0].isdigit() and is_alive(int(words[0]), words[1], words[2]):
            found[match.group(1)] = (os.path.join(folder, name), int(words[0]), words[3])
    return found


def read(path: str) -> str:
    """Return the end of a file of a rank, and its first line."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            first = file.readline(1000)
            file.seek(max(len(first), file.seek(0, os.SEEK_END) - MOST_BYTES))
            return (first + file.read(MOST_BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""


def is_alive(pid: int, start: str, boot_id: str) -> bool:
    """Return whether the process that registered the signal still runs; the signal would end another process."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot, open(f"/proc/{pid}/stat", "rb") as stat:
            ticks = stat.read().rsplit(b")", 1)[1].split()[19].decode()
            return boot.read().strip() == boot_id and ticks == start and catches(pid)
    except (OSError, IndexError):
        return False


def catches(pid: int) -> bool:
    with open(f"/proc/{pid}/status") as status:
        caught = next((line.split()[1] for line in status if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (WHERE - 1) & 1)


def stacks(folder: str) -> dict[str, dict[str, str]]:
    """Return the stack of each rank, the most recent call first, and its host."""
    ranks = ranks_of(folder)
    before = {rank: os.path.getsize(path) for rank, (path, _pid, _host) in ranks.items()}
    for _path, pid, _host in ranks.values():
        os.kill(pid, WHERE)
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline and any(os.path.getsize(ranks[rank][0]) == before[rank] for rank in ranks):
        time.sleep(LOOK_SECONDS)
    time.sleep(LOOK_SECONDS)
    found = {}
    for rank, (path, _pid, host) in ranks.items():
        last = read(path).rpartition("(most recent call first):\n")
        found[rank] = {"host": host, "stack": last[2] if last[1] and os.path.getsize(path) > before[rank] else ""}
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"ranks": stacks(sys.argv[1])}) + "\n")
