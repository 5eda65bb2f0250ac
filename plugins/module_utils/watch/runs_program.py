"""Runs on a node: reports the other training runs on it since a time, and the new files in the folder of this run."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import stat
import sys

RANK = re.compile(r"rank\d{1,7}\.(?:jsonl|stack)\Z")
# The file of a run with its processes is written when it starts, on its launcher; its output is there too.
RUN, OUTPUT = "run.json", "output.log"
LONGEST_LINE = 1 << 16
MOST_RUNS, MOST_FILES = 1000, 10000


def is_kept(path: str, kind: int) -> bool:
    """Return whether a path is a file or a folder itself, and no link to one."""
    with contextlib.suppress(OSError, ValueError):
        return stat.S_IFMT(os.lstat(path).st_mode) == kind
    return False


def running() -> dict[str, float]:
    """Return the folders of the runs with a process on this node, each with the start of its first process."""
    found: dict[str, float] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                pairs = dict(pair.partition(b"=")[::2] for pair in file.read().split(b"\0"))
            folder = os.path.normpath(pairs.get(b"DML_RECORDS", b"").decode("utf-8", "replace"))
            if os.path.isabs(folder):
                began = os.stat(f"/proc/{pid}").st_mtime
                found[folder] = min(began, found.get(folder, began))
    return found


def times_of(folder: str) -> list[float]:
    """Return times at which the run of a folder was active on this node; none for a folder of something else."""
    times = []
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if (RANK.match(name) or name in (RUN, OUTPUT)) and is_kept(path, stat.S_IFREG):
            times.append(os.lstat(path).st_mtime)
            if name.endswith(".jsonl"):
                times += first_time(path)
    return times


def first_time(path: str) -> list[float]:
    """Return the time of the first record in a file."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            return [float(json.loads(file.readline(LONGEST_LINE))["t"])]
    return []


def others(folder: str, since: float) -> list[dict[str, object]]:
    """Return the other runs that were active on this node since a time; a run that is still active has no end."""
    own, active, found = os.path.normpath(folder), running(), []
    beside = os.path.dirname(own)
    with contextlib.suppress(OSError):
        names = sorted(os.listdir(beside))[:MOST_RUNS]
        folders = {os.path.join(beside, name) for name in names} | set(active)
        for path in sorted(folders - {own}):
            times = times_of(path) if is_kept(path, stat.S_IFDIR) else []
            times += [active[path]] if path in active else []
            if times and (path in active or max(times) >= since):
                until = None if path in active else max(times)
                found.append({"run_dir": path, "user": owner(path), "since": min(times), "until": until})
    return found


def owner(path: str) -> str:
    """Return the user to whom a folder belongs."""
    try:
        return pwd.getpwuid(os.lstat(path).st_uid).pw_name
    except (OSError, KeyError):
        return ""


def files(folder: str) -> list[list[object]]:
    """Return the files below a folder with their times; those that the run was given have the time 0."""
    found: list[list[object]] = []
    for top, _folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            if is_kept(path, stat.S_IFREG) and os.lstat(path).st_mtime > 0:
                found.append([os.path.relpath(path, folder), os.lstat(path).st_mtime])
        if len(found) >= MOST_FILES:
            break
    return found


def main() -> None:
    folder, since = sys.argv[1], float(sys.argv[2])
    report = {"runs": others(folder, since), "files": files(os.path.join(folder, "work"))}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
