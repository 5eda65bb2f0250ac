"""Start one job of mpirun in a run directory, survive the task that started it, and leave no process of it behind.

It needs only the standard library: a copy in each run directory runs from there (``supervisor.py run FOLDER``), and its
text is sent to each node to find left-over processes (``python3 - sweep ID JOB SECONDS``).
"""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # this runs on a node, without Ansible
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator

MARK, MARK_OPTION = "DML_RUN_ID", "dml_run_id"  # of processes, and of mpirun, which passes it to its daemons
DESIRED, RUN, OUTPUT, END = "wish.json", "run.json", "output.log", "end.json"  # options, processes, output, end
# The file of the end is allocated before the job starts, because the job may fill the disk.
END_BYTES, FULL_BYTES = 8192, 65536
LOOK_SECONDS, JOB_SECONDS, KILL_SECONDS, SWEEP_SECONDS = 0.2, 120.0, 5.0, 60.0
UNENDED = "processes"  # how the reason begins if a node answers
# Python ignores an exception that a signal handler raises while an object is finalized, so the request is kept too.
_REQUESTED: list[bool] = []
_JOB, _MARKED = re.compile(r"ess_base_jobid\W+(\d+)"), re.compile(rf"-mca {MARK_OPTION} (\S+)")


def start_ticks(pid: int) -> int | None:
    """Return the start of a process in kernel ticks since boot; None if it has ended or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rsplit(b")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def boot_id() -> str:
    """Return the identifier of this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def identity(pid: int) -> dict[str, object]:
    """Return the host, PID, start and boot ID of a process, which identify it together."""
    return {"host": socket.gethostname(), "pid": pid, "start": start_ticks(pid), "boot_id": boot_id()}


def is_alive(process: dict[str, Any]) -> bool:
    """Return whether the same process still runs here; false if it ended before its start was read."""
    start = process["start"]
    return start is not None and process["boot_id"] == boot_id() and start_ticks(process["pid"]) == start


def read(folder: str, name: str) -> dict[str, Any] | None:
    """Return the content of one file of a run directory; None while the file is missing or incomplete."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def write(folder: str, name: str, content: dict[str, object]) -> None:
    """Write one file of a run directory atomically."""
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def write_end(folder: str, end: dict[str, object]) -> None:
    """Write the end of the job into the allocated space."""
    with open(os.path.join(folder, END), "r+b") as file:
        file.write(json.dumps(end).encode().ljust(END_BYTES))


def sweep(run_id: str, job: str, seconds: float) -> dict[str, Any]:
    """End every process of the job on this machine; return the remaining ones."""
    deadline = time.monotonic() + seconds
    while True:
        left = dict(processes_of(run_id, job))
        if not left or time.monotonic() > deadline + KILL_SECONDS:
            return {"left": list(left)}
        number = signal.SIGKILL if time.monotonic() > deadline else signal.SIGTERM
        for pid, start in left.items():
            send(pid, start, number)
        time.sleep(LOOK_SECONDS)


def send(pid: int, start: int, number: int) -> None:
    """Send a signal to a process unless it has ended, because another process may have its PID by then."""
    with contextlib.suppress(ProcessLookupError):
        if start_ticks(pid) == start:
            os.kill(pid, number)


def processes_of(run_id: str, job: str) -> Iterator[tuple[int, int]]:
    """Yield the PID and start of the job's processes here: those with its mark, and its MPI daemon."""
    mark, own = f"{MARK}={run_id}".encode(), os.getpid()
    for name in os.listdir("/proc"):
        start = start_ticks(int(name)) if name.isdigit() and int(name) != own else None
        if start is not None and (mark in _content(name, "environ").split(b"\0") or _is_daemon(name, run_id, job)):
            yield int(name), start


def _is_daemon(pid: str, run_id: str, job: str) -> bool:
    words = _words(pid)  # the number of a job is a hash, which two jobs may share
    mark, match = _MARKED.search(words), _JOB.search(words)
    own = mark[1] == run_id if mark else job and match and int(match[1]) + 1 == int(job)
    return bool(own) and os.path.basename(words.split(" ", 1)[0]) == "orted"


def _words(pid: str) -> str:
    return _content(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")


def _content(pid: str, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def find_job(run_id: str, launcher: int) -> str:
    """Return MPI's namespace of the job, from the launcher's daemons or from its ranks here; empty if unknown."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        variables = dict(pair.partition(b"=")[::2] for pair in _content(name, "environ").split(b"\0"))
        if variables.get(MARK.encode()) != run_id.encode():
            continue
        if b"PMIX_NAMESPACE" in variables:
            return variables[b"PMIX_NAMESPACE"].decode()
        if int(name) != launcher and (match := _JOB.search(_words(name))):
            return str(int(match[1]) + 1)
    return ""


def sweep_nodes(desired: dict[str, Any], run: dict[str, Any], grace: float) -> dict[str, str]:
    """End the job's processes on every node; return by node the reason why processes may remain."""
    nodes = list(desired["nodes"])
    with ThreadPoolExecutor(max_workers=16) as pool:
        faults = list(pool.map(lambda node: _sweep(node, desired, run, grace), nodes))
    return {node: fault for node, fault in zip(nodes, faults) if fault}


def _sweep(node: str, desired: dict[str, Any], run: dict[str, Any], grace: float) -> str:
    # Daemons without that option belong to another job of the same number.
    job = "" if MARK_OPTION in desired.get("mpirun_command", ()) else run.get("job") or ""
    if node in (*desired["here"], "localhost", "127.0.0.1"):
        left = sweep(run["id"], job, grace)["left"]
    else:
        program = shlex.join([desired["remote_python"], "-", "sweep", run["id"], job, str(grace)])
        try:
            left = _left_on([*shlex.split(desired["remote_shell"]), node, program])
        except subprocess.CalledProcessError as error:
            return " ".join((error.stderr.decode("utf-8", "replace") or f"exit code {error.returncode}").split())
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            return " ".join(str(error).split())
    return f"{UNENDED} {', '.join(map(str, left))} could not be ended" if left else ""


def _left_on(command: list[str]) -> list[int]:
    """Return the processes that a sweep on another node left, from its last line: a shell may print text at login."""
    with open(__file__, "rb") as source:
        done = subprocess.run(command, stdin=source, capture_output=True, timeout=SWEEP_SECONDS, check=True)  # noqa: S603
    output = done.stdout.decode("utf-8", "replace")
    for line in reversed(output.splitlines()):
        with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError):
            return list(json.loads(line)["left"])
    raise ValueError(f"unexpected output: {' '.join(output.split())[:200] or 'nothing'}")


def supervise(folder: str) -> int:
    """Run the job of a run directory to its end, and return the exit code of its launcher, as a shell counts it."""
    desired = _must_read(folder, DESIRED)
    with open(os.path.join(folder, END), "wb") as room:
        room.write(b" " * END_BYTES)
        os.fsync(room.fileno())
    signal.signal(signal.SIGTERM, _raise_stop)
    launcher = _launch(folder, desired)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until _wait can stop the job for it
    run = {"id": desired["id"], "launcher": identity(launcher.pid), "supervisor": identity(os.getpid()), "job": None}
    run["started"] = time.time()
    try:
        write(folder, RUN, run)
        _answer({"launcher": run["launcher"]})
        stopped = _wait(folder, run, launcher)
    except BaseException:
        launcher.kill()
        launcher.wait()
        sweep_nodes(desired, run, KILL_SECONDS)
        raise
    _finish(folder, desired, run, stopped, launcher.returncode)
    return int(launcher.returncode if launcher.returncode >= 0 else 128 - launcher.returncode)


def end(folder: str) -> int:
    """End a job whose supervisor no longer runs; return 0. The end that the supervisor has written stays."""
    desired, run, known = _must_read(folder, DESIRED), _must_read(folder, RUN), read(folder, END)
    deadline = time.monotonic() + KILL_SECONDS
    for number in (signal.SIGTERM, signal.SIGKILL):
        while is_alive(run["launcher"]) and time.monotonic() < deadline:
            send(run["launcher"]["pid"], run["launcher"]["start"], number)
            time.sleep(LOOK_SECONDS)
        deadline += KILL_SECONDS
    if known:
        _sweep_and_write(folder, desired, run, known)
    else:
        _finish(folder, desired, run, True, None)
    return 0


def _must_read(folder: str, name: str) -> dict[str, Any]:
    if (content := read(folder, name)) is None:
        raise ValueError(f"{os.path.join(folder, name)} cannot be read")
    return content


def _launch(folder: str, desired: dict[str, Any]) -> subprocess.Popen[bytes]:
    # Only its user may read it: a rank may print values of its environment.
    with open(os.path.join(folder, OUTPUT), "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        return subprocess.Popen(  # noqa: S603 # the requested job
            desired["mpirun_command"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **desired["mpirun_environment"], MARK: desired["id"]},
            start_new_session=True,
        )


def _wait(folder: str, run: dict[str, Any], launcher: subprocess.Popen[bytes]) -> bool:
    """Wait for the end of the job; return whether the end was requested."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        deadline = time.monotonic() + JOB_SECONDS
        while launcher.poll() is None and not run["job"] and time.monotonic() < deadline and not _REQUESTED:
            run["job"] = find_job(run["id"], launcher.pid) or None
            if run["job"]:
                # A full disk must not end the job here: the ranks detect it.
                with contextlib.suppress(OSError):
                    write(folder, RUN, run)
            time.sleep(LOOK_SECONDS)
        if _REQUESTED:
            raise KeyboardInterrupt
        launcher.wait()
    except KeyboardInterrupt:  # the end of the job was requested
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        launcher.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            launcher.wait(KILL_SECONDS)
        launcher.kill()
        launcher.wait()
        return True
    return False


def is_full(folder: str) -> bool:
    """Return whether the file system of a folder has no room."""
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize < FULL_BYTES


def _finish(folder: str, desired: dict[str, object], run: dict[str, object], stopped: bool, code: int | None) -> None:
    ended: dict[str, Any] = {"ended": time.time(), "stopped": stopped, "exit_code": code, "left": {}}
    ended["full"] = is_full(folder)  # space may be free again when a command reads the end
    write_end(folder, {**ended, "swept": False})
    _sweep_and_write(folder, desired, run, ended)


def _sweep_and_write(folder: str, desired: dict[str, Any], run: dict[str, Any], ended: dict[str, Any]) -> None:
    left = sweep_nodes(desired, run, KILL_SECONDS)
    some = {node: fault[:200] for node, fault in list(left.items())[:20]}
    write_end(folder, {**ended, "left": some, "swept": True})


def _raise_stop(_signal: int, _frame: object) -> None:
    _REQUESTED.append(True)
    raise KeyboardInterrupt


def _answer(answer: dict[str, object]) -> None:
    """Write one line to the waiting task that started the supervisor; then close the output."""
    os.write(1, json.dumps(answer).encode() + b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def main(arguments: list[str]) -> int:
    """Run ``run FOLDER``, ``end FOLDER`` or ``sweep ID JOB SECONDS``; a batch system reads the exit code of ``run``."""
    if arguments[0] == "sweep":
        sys.stdout.write(json.dumps(sweep(arguments[1], arguments[2], float(arguments[3]))))
        return 0
    try:
        return supervise(arguments[1]) if arguments[0] == "run" else end(arguments[1])
    except (OSError, ValueError) as error:
        place = getattr(error, "filename", None) or arguments[1]  # the error of a write has no file name
        _answer({"error": f"{place}: {error.strerror}" if isinstance(error, OSError) else str(error)})
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
