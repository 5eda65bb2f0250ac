"""Runs on a node: reports the collection's training jobs there, including containers and pods, and a manifest."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

import json
import os
import pwd
import socket
import stat
import sys
from typing import Any, Iterable, Iterator, NamedTuple

PROC, RUN = "/proc", "run.json"
RUN_DIR, RUN_ID, REQUESTED_BY = b"DML_RECORDS", b"DML_RUN_ID", b"DML_RUN_BY"
MOST_RANKS, END_BYTES, MOST_OF_A_NAME, MOST_OF_A_MANIFEST = 64, 4096, 200, 16 << 20
# The owner of the run directory can replace its files with links and pipes.
ONLY_FILES = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class JobProcess(NamedTuple):
    """One process of a job; ``began`` is its start in seconds since 1970, ``ticks`` the start in kernel ticks."""

    pid: int
    ticks: int
    began: float
    user: str
    run_dir: str
    run_id: str
    requested_by: str


def node_jobs() -> list[dict[str, object]]:
    """Return the jobs with their step; users other than root see only their own jobs."""
    found = jobs(_processes(boot_time()))
    for job in found:
        job["launched_here"] = _is_launched_here(os.path.join(job["run_dir"], RUN))
        job["step"] = _step(job["run_dir"])
    return found


def jobs(processes: Iterable[JobProcess]) -> list[dict[str, Any]]:
    """Return the jobs of processes, in the order of their directories; no job has processes of two users."""
    found: dict[tuple[str, str, str], list[JobProcess]] = {}
    for process in processes:
        # Root's processes in pods and containers belong to the job.
        key = process.run_dir, process.run_id, "" if process.requested_by else process.user
        found.setdefault(key, []).append(process)
    return sorted((_job(each) for each in found.values()), key=lambda job: (job["run_dir"], job["started"]))


def _job(processes: list[JobProcess]) -> dict[str, Any]:
    first = min(processes, key=lambda process: (process.began, process.pid))
    return {
        "run_dir": first.run_dir,
        "run_id": first.run_id,
        "user": first.user,
        "asked_by": first.requested_by[:MOST_OF_A_NAME],
        "started": round(first.began, 2),
        "processes": [{"pid": process.pid, "start": process.ticks} for process in sorted(processes)],
    }


def _processes(booted: float) -> Iterator[JobProcess]:
    hertz = os.sysconf("SC_CLK_TCK")
    for pid in map(int, filter(str.isdigit, os.listdir(PROC))):
        try:
            named, ticks = _marks_of(pid), start_ticks(pid)
            uid = os.stat(f"{PROC}/{pid}").st_uid if named else 0
            # Another process may have its PID by now.
            is_same = named and ticks is not None and (_marks_of(pid), start_ticks(pid)) == (named, ticks)
        except OSError:  # it has ended, or belongs to another user
            continue
        if named and ticks is not None and is_same:
            run_dir, run_id, requested_by = named
            person = requested_by if _may_speak_for(uid, run_dir) else ""
            yield JobProcess(pid, ticks, booted + ticks / hertz, _user_name(uid), run_dir, run_id, person)


def _marks_of(pid: int) -> tuple[str, str, str] | None:
    with open(f"{PROC}/{pid}/environ", "rb") as environ:
        return marks(environ.read())


def marks(environ: bytes) -> tuple[str, str, str] | None:
    """Return the run directory, the ID and the requester of a job from a process environment; None for others."""
    if RUN_DIR not in environ:
        return None
    pairs = dict(pair.partition(b"=")[::2] for pair in environ.split(b"\0"))
    if not pairs.get(RUN_DIR):
        return None
    run_dir, run_id, by = (pairs.get(name, b"").decode("utf-8", "replace") for name in (RUN_DIR, RUN_ID, REQUESTED_BY))
    return run_dir, run_id, by


def start_ticks(pid: int) -> int | None:
    """Return the start of a process in kernel ticks since boot; None if it has ended or is a zombie."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            fields = file.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


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
    steps = [last_step(end_of(os.path.join(run_dir, name))) for name in names]
    return max((step for step in steps if step is not None), default=None)


def last_step(end_of_file: bytes) -> int | None:
    """Return the step of the last record in the tail of a record file; None if it contains none."""
    for line in reversed(end_of_file.split(b"\n")[:-1]):
        try:
            step = json.loads(line)["step"]
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
        if isinstance(step, int) and not isinstance(step, bool):
            return step
    return None


def is_of_a_rank(name: str) -> bool:
    """Return whether a file name is that of a rank's records."""
    return name.startswith("rank") and name.endswith(".jsonl") and name[4:-6].isdigit()


def end_of(path: str, most: int = END_BYTES) -> bytes:
    """Return the end of a file; empty if it cannot be read."""
    try:
        handle = os.open(path, ONLY_FILES)
    except OSError:
        return b""
    try:
        status = os.fstat(handle)
        is_file = stat.S_ISREG(status.st_mode)
        return os.pread(handle, most, max(0, status.st_size - most)) if is_file else b""
    except OSError:
        return b""
    finally:
        os.close(handle)


def manifest_in(path: str) -> str:
    """Return the text of a manifest, whose owner may replace it; empty if it is missing or too large."""
    text = end_of(path, MOST_OF_A_MANIFEST + 1)
    return text.decode("utf-8", "replace") if len(text) <= MOST_OF_A_MANIFEST else ""


def main() -> None:
    """Print the report; the words are the path of a manifest, and the name of this node in Kubernetes."""
    path, node = sys.argv[1:3]
    report = {"jobs": node_jobs(), "node": node or os.uname().nodename.lower()}
    sys.stdout.write(json.dumps({**report, **({"manifest": manifest_in(path)} if path else {})}) + "\n")


if __name__ == "__main__":
    main()
