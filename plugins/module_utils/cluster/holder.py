# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The process on the controller that holds a lock: the ansible run above this module, and whether one still lives."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from ..logic.lock import Process, plain

PROC = Path("/proc")
COMMANDS = {"ansible", "ansible-playbook", "ansible-console"}


def owner() -> str:
    """Who runs this, for people to read."""
    return plain(f"{getpass.getuser()}@{socket.gethostname()}")


def running() -> Process | None:
    """The outermost ansible command among this process's ancestors; nothing where there is none to see."""
    found = None
    for pid in _ancestors(os.getpid()):
        if _is_ansible(pid):
            found = pid
    return _described(found) if found else None


def watch() -> Callable[[], bool]:
    """Tells, whenever it is called, whether the run that is running now is still there."""
    process = running()
    return lambda: not is_dead(process)


def is_dead(process: Process | None) -> bool:
    """Whether the process certainly ended: only the machine on which it ran, since the same boot, can tell."""
    if process is None:
        return False
    here = _described(os.getpid())
    if here is None or (here.boot, here.namespace, here.machine) != (process.boot, process.namespace, process.machine):
        return False
    there = _described(process.pid)
    return there is None or there.started != process.started


def _described(pid: int) -> Process | None:
    try:
        fields = _stat(pid)
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        # Containers of one machine share its boot, yet not its process numbers.
        namespace = os.readlink(PROC / "self/ns/pid").strip("pid:[]")
    except OSError:
        return None
    if fields[0] == "Z":
        return None
    return Process(plain(socket.gethostname()), boot, namespace, pid, int(fields[19]))


def _stat(pid: int) -> list[str]:
    """The fields of a process's status after its name, which may hold anything."""
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
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")[:2]
    except OSError:
        return False
    return any(os.path.basename(word).decode(errors="replace") in COMMANDS for word in words)
