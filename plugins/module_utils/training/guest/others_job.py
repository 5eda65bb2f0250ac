"""The state of a job that another tool started, from its step records and the processes that wrote them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

from ...guests import supervisor
from ...watch import jobs_program
from ...watch.signal_program import last_object
from ..ending.job_state import JobState, LauncherIdentity

# Programs that start all ranks and end with them.
LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun", "srun", "torchrun")
INTERPRETED = 2  # the name of a launcher is the first word of its command, or the second one after an interpreter


def state_of(records: str) -> JobState:
    """Return the job whose ranks write to this folder, in the form of ``job.job_state``, or why it is absent."""
    ranks = sorted(_running_ranks(records))
    if not ranks:
        cause = f"no process on {socket.gethostname()} wrote the last record of a rank in {records}"
        return {"state": "absent", "why": cause}
    _rank, pid, run_id = ranks[0]
    identity: Any = supervisor.identity(_launcher_of(pid))
    launcher: LauncherIdentity = identity
    hertz = os.sysconf("SC_CLK_TCK")
    started = jobs_program.boot_time() + (launcher["start"] or 0) / hertz
    return {"state": "running", "run_id": "", "launcher": launcher, "job": run_id, "started": started}


def _running_ranks(records: str) -> Iterator[tuple[int, int, str]]:
    """Yield rank, process and job of each rank that runs here."""
    try:
        names = [name for name in os.listdir(records) if jobs_program.is_of_a_rank(name)]
    except OSError:
        return
    for name in names[: jobs_program.MOST_RANKS]:
        last = last_object(jobs_program.end_of(os.path.join(records, name)).split(b"\n")[:-1]) or {}
        if _runs_here(last):
            yield int(name[4:-6]), int(last["pid"]), str(last.get("job") or "")


def _runs_here(record: dict[str, object]) -> bool:
    pid, start = record.get("pid"), record.get("start")
    # A container has the boot id of its node, but not always its host name.
    is_here = record.get("boot_id") in (None, supervisor.boot_id())
    return is_here and isinstance(pid, int) and isinstance(start, int) and supervisor.start_ticks(pid) == start


def _launcher_of(rank: int) -> int:
    """Return the outermost launcher above a rank; the rank itself if no launcher is above it, as with ssh."""
    found = pid = rank
    while pid > 1:
        if _is_launcher(pid):
            found = pid
        pid = _parent_of(pid)
    return found


def _is_launcher(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode("utf-8", "replace").split("\0")
    except OSError:
        return False
    return any(os.path.basename(word) in LAUNCHERS for word in words[:INTERPRETED])


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rsplit(b")", 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
