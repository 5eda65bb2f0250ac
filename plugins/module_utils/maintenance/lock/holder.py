"""The process on the controller that holds a lock: the ansible run above this module, and whether it still runs."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ...errors import Abandoned
from .lock_rules import RunProcess, safe_text

PROC = Path("/proc")
COMMANDS = {"ansible", "ansible-playbook", "ansible-console"}
AS_MODULE = [b"-m", b"ansible"]
# The longest machine name with which the name of a run (machine, process and start) fits in a record.
LONGEST_MACHINE = 32
# Names the run that holds the lock: a module that starts after its run was killed does not find the run above itself.
RUN = "DML_VSPHERE_RUN"


def current_user() -> str:
    """Return the name of the user who runs this; everybody can set ``LOGNAME`` and ``USER``."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user of a container, without a name
        return f"uid{os.geteuid()}"


def owner() -> str:
    """Return who runs this, for people to read."""
    return safe_text(f"{current_user()}@{socket.gethostname()}")


def running() -> RunProcess | None:
    """Return the run that the environment names, else the outermost ansible command above this process, if any."""
    named, ancestor = _named(), None
    if named:
        return named
    for pid in _ancestors(os.getpid()):
        if _is_ansible(pid):
            ancestor = pid
    return _described(ancestor) if ancestor else None


def run_watch() -> Callable[[], bool]:
    """Return a function that returns whether the current run still runs."""
    process = running()
    return lambda: not is_dead(process)


@contextmanager
def marked() -> Iterator[None]:
    """Mark this run's module as running, for every process of this machine, while the block runs."""
    run = running()
    if run is None:
        yield
        return
    if is_dead(run):
        raise Abandoned("this module", "start", "the ansible run that requested it has ended", "run again")
    # The kernel removes the name when the process ends, however that happens.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mark:
        mark.bind(f"\0{_mark(run)}{os.getpid()}")
        yield


def survivors(process: RunProcess | None, of: str = "") -> list[int]:
    """Return the process IDs of a run's modules that still run; modules outlive a killed ansible.

    ``of`` is the owner of the run. Every user of this machine can take the name of a module's socket.
    """
    if process is None:
        return []
    try:
        names = (PROC / "net/unix").read_text(errors="replace")
    except OSError:
        return []
    named = re.findall(rf" (\d+) @{re.escape(_mark(process))}(\d+)$", names, re.MULTILINE)
    users = _users(of)
    return [int(pid) for inode, pid in named if _has_socket(pid, inode, users)]


def _users(of: str) -> set[int]:
    """Return the users whose processes may be modules of a run; empty if its owner is not a user of this machine."""
    try:
        return {pwd.getpwnam(of.partition("@")[0]).pw_uid, os.geteuid()}
    except KeyError:
        return set()


def _has_socket(pid: str, inode: str, users: set[int]) -> bool:
    """Return whether a process has a socket; only root can see that of the processes of other users."""
    process = PROC / pid
    try:
        user = process.stat().st_uid
        files = os.listdir(process / "fd") if not users or user in users else []
    except PermissionError:
        return user != os.geteuid()
    except OSError:
        return False
    return any(_target(process / "fd" / file) == f"socket:[{inode}]" for file in files)


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


def _mark(run: RunProcess) -> str:
    return f"dml.vsphere/{run.pid}.{run.started}/"


def _named() -> RunProcess | None:
    """Return the run in the environment, if it is a run of this machine."""
    name = re.fullmatch(r"(?P<machine>.+)\.(?P<pid>\d+)\.(?P<started>\d+)", os.environ.get(RUN, ""))
    this_process = _described(os.getpid())
    if name is None or this_process is None or name["machine"] != this_process.machine:
        return None
    return replace(this_process, pid=int(name["pid"]), started=int(name["started"]))


def is_dead(process: RunProcess | None) -> bool:
    """Return whether the process certainly ended: only its own machine, in the same boot, can detect that."""
    if process is None:
        return False
    return _is_here(process) and not _runs(process)


def is_alive(process: RunProcess | None) -> bool:
    """Return whether the process certainly runs: only its own machine can detect that."""
    return process is not None and _is_here(process) and _runs(process)


def _is_here(process: RunProcess) -> bool:
    """Return whether a process was started on this machine, in this container, after the last boot."""
    this_process = _described(os.getpid())
    mine = (this_process.boot, this_process.namespace, this_process.machine) if this_process else None
    return mine == (process.boot, process.namespace, process.machine)


def _runs(process: RunProcess) -> bool:
    there = _described(process.pid)
    return there is not None and there.started == process.started


def _described(pid: int) -> RunProcess | None:
    try:
        fields = _stat(pid)
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        # Containers of one machine share its boot, but not its process IDs.
        namespace = os.readlink(PROC / "self/ns/pid").strip("pid:[]")
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return RunProcess(safe_text(socket.gethostname(), LONGEST_MACHINE), boot, namespace, pid, int(fields[19]))


def _stat(pid: int) -> list[str]:
    """Return the fields of a process's status after its name, which may contain any character."""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        try:
            pid = int(_stat(pid)[1])
        except OSError:
            return
        yield pid


def _is_ansible(pid: int) -> bool:
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # python -m ansible playbook
    if words[1:3] == AS_MODULE:
        return True
    words = words[:2]
    return any(os.path.basename(word).decode(errors="replace") in COMMANDS for word in words)
