# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The collection's training jobs on this node, including containers and pods, found by its processes."""

from __future__ import annotations

import json
import os
import pwd
import socket
import stat
from collections.abc import Iterator
from typing import Any

from ...guests import supervisor
from ..running import busy

PROC = "/proc"
MOST_RANKS, END_BYTES = 64, 4096
# The owner of the run directory can replace its files with links and pipes.
ONLY_FILES = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def node_jobs() -> list[dict[str, Any]]:
    """Return the jobs with their step; users other than root see only their own jobs."""
    found = busy.jobs(_processes(boot_time()))
    for job in found:
        job["launched_here"] = _is_launched_here(os.path.join(job["run_dir"], supervisor.RUN))
        job["step"] = _step(job["run_dir"])
        job["title"] = busy.title(job)
    return found


def _processes(booted: float) -> Iterator[busy.JobProcess]:
    hertz = os.sysconf("SC_CLK_TCK")
    for name in os.listdir(PROC):
        pid = int(name) if name.isdigit() else 0
        ticks = supervisor.start_ticks(pid) if pid else None
        if ticks is None:
            continue
        try:
            with open(f"{PROC}/{pid}/environ", "rb") as environ:
                marks = busy.marks(environ.read())
            uid = os.stat(f"{PROC}/{pid}").st_uid
        except OSError:  # it has ended, or belongs to another user
            continue
        # Another process may have its PID by now.
        if marks and supervisor.start_ticks(pid) == ticks:
            run_dir, run_id, requested_by = marks
            person = requested_by if _may_speak_for(uid, run_dir) else ""
            yield busy.JobProcess(pid, ticks, booted + ticks / hertz, _user_name(uid), run_dir, run_id, person)


def _may_speak_for(uid: int, run_dir: str) -> bool:
    """Return whether to trust a process on who started a run: any user can set these variables for a process."""
    try:
        status = os.lstat(run_dir)
    except (OSError, ValueError):
        return uid == 0
    return uid == 0 or (stat.S_ISDIR(status.st_mode) and status.st_uid == uid)


def boot_time() -> float:
    """Return the start of this machine, in seconds since 1970."""
    with open(f"{PROC}/stat", "rb") as lines:
        return next(float(line.split()[1]) for line in lines if line.startswith(b"btime "))


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _is_launched_here(path: str) -> bool:
    """Return whether the file of a launcher is that of this node: several nodes may share the folder of runs."""
    try:
        launcher = dict(json.loads(end_of(path)))["launcher"]["host"]
    except (ValueError, TypeError, KeyError, RecursionError):
        launcher = socket.gethostname()
    return _is_file(path) and launcher == socket.gethostname()


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _step(run_dir: str) -> int | None:
    """Return the last step of the ranks whose records are on this node."""
    try:
        names = sorted(filter(is_of_a_rank, os.listdir(run_dir)))[:MOST_RANKS]
    except (OSError, ValueError):
        return None
    steps = [busy.last_step(end_of(os.path.join(run_dir, name))) for name in names]
    return max((step for step in steps if step is not None), default=None)


def is_of_a_rank(name: str) -> bool:
    """Return whether a file name is that of a rank's records."""
    return name.startswith("rank") and name.endswith(".jsonl") and name[4:-6].isdigit()


def end_of(path: str) -> bytes:
    """Return the end of a file; empty if it cannot be read."""
    try:
        handle = os.open(path, ONLY_FILES)
    except OSError:
        return b""
    try:
        status = os.fstat(handle)
        is_file = stat.S_ISREG(status.st_mode)
        return os.pread(handle, END_BYTES, max(0, status.st_size - END_BYTES)) if is_file else b""
    except OSError:
        return b""
    finally:
        os.close(handle)
