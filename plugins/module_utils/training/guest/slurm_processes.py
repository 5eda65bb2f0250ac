"""The state of a job in Slurm from its processes on this node, as ``scontrol listpids`` lists them.

The folders of its cgroups have other names in each version of Slurm.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from typing import Any, List, NamedTuple, Tuple

from ...guests import supervisor
from ...watch import jobs_program
from ..ending.job_state import JobState, LauncherIdentity
from . import others_job

RECORDS = b"DML_RECORDS="
BATCH, FIRST = "batch", "0"
Run = Callable[[List[str]], Tuple[int, str, str]]
_PID = re.compile("[0-9]{1,9}")


class Process(NamedTuple):
    """A process with its step; ``local`` is the number of its task on the node, ``-`` for children of tasks."""

    pid: int
    step: str
    local: str


def listed(number: str, run: Run) -> tuple[str, str]:
    """Return the output of ``scontrol listpids`` and its error: it knows a task of an array only by its own number."""
    if "_" in number:
        _code, own, failure = run(["squeue", "--noheader", f"--jobs={number}", "--format=%A"])
        number = own.strip()
        if not number.isdecimal():
            return "", failure.strip()
    _code, output, failure = run(["scontrol", "listpids", number])
    return output, failure.strip()


def processes_of(output: str) -> list[Process]:
    """Return the processes in the output of ``scontrol listpids``."""
    rows = (line.split() for line in output.splitlines())
    return [Process(int(row[0]), row[2], row[3]) for row in rows if len(row) >= 4 and _PID.fullmatch(row[0])]


def state_of(number: str, output: str, failure: str, records: str) -> JobState:
    """Return the job whose processes are listed, with the folder of its records; absent without a process."""
    alive = [each for each in processes_of(output) if supervisor.start_ticks(each.pid) is not None]
    if not alive:
        cause = f"Slurm lists no process of job {number} on {socket.gethostname()}"
        return {"state": "absent", "why": f"{cause}: {failure}" if failure else cause}
    # The batch script, which ends with the job; a job of srun or salloc has none.
    first = min(alive, key=lambda each: (each.step != BATCH, each.local != FIRST))
    identity: Any = supervisor.identity(first.pid)
    launcher: LauncherIdentity = identity
    started = jobs_program.boot_time() + (launcher["start"] or 0) / os.sysconf("SC_CLK_TCK")
    folder = records or next(filter(None, (_records_of(each.pid) for each in alive)), "")
    of_ranks = str(others_job.state_of(folder).get("job") or "") if folder else ""
    known: JobState = {"state": "running", "run_id": "", "launcher": launcher, "job": of_ranks, "started": started}
    return {**known, "records": folder}


def _records_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return ""
    found = next((each for each in variables if each.startswith(RECORDS)), b"")
    return found[len(RECORDS) :].decode("utf-8", "replace")
