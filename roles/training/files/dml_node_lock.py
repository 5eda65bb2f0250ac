"""Keep other training runs off this node for as long as a rank runs::

    python3 dml_node_lock.py FOLDER COMMAND ...

The first rank of a run on a node locks a file in the folder, and then becomes the command: the kernel unlocks the file
when the last process with the open file has ended, so no lock is left behind. The file names the run for messages.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from typing import Any

BUSY = 16
LOCAL_RANK, RUN_DIR, REQUESTED_BY = "OMPI_COMM_WORLD_LOCAL_RANK", "DML_RECORDS", "DML_RUN_BY"
MOST = 4096


def lock(folder: str) -> None:
    """Lock the node, or end this rank with the run that holds the lock."""
    node = socket.gethostname()
    handle = _opened(os.path.join(folder, f"node-{node.partition('.')[0]}.lock"))
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"NodeBusyError: {sentence(node, _read(handle))}\n")
        sys.exit(BUSY)
    about = {"name": os.path.basename(os.environ.get(RUN_DIR, "")), "asked_by": os.environ.get(REQUESTED_BY, "")}
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(about).encode(), 0)
    except OSError:  # the file of another user, or a full disk: the lock holds without a name
        pass
    # The command inherits the open file, and with it the lock.
    os.set_inheritable(handle, True)


def sentence(node: str, about: Any) -> str:
    """Return who trains on the node, and what to do."""
    known = about if isinstance(about, dict) else {}
    name, by = ("".join(filter(str.isprintable, str(known.get(key) or ""))) for key in ("name", "asked_by"))
    ends = f"dml.vsphere.stop -e training_name={name} ends it" if name else "dml.vsphere.runs lists the runs"
    who = f"{name or 'another run'}{' of ' + by if by else ''}"
    return f"{node} trains {who}: -e training_wait=SECONDS waits for its end, and {ends}"


def _opened(path: str) -> int:
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o644)
    except PermissionError:  # another user made the file
        return os.open(path, os.O_RDONLY | flags)


def _read(handle: int) -> Any:
    try:
        return json.loads(os.pread(handle, MOST, 0))
    except (OSError, ValueError, RecursionError):
        return {}


def main() -> None:
    """Lock the node if this is its first rank, and become the command."""
    folder, command = sys.argv[1], sys.argv[2:]
    if os.environ.get(LOCAL_RANK, "0") == "0":
        lock(folder)
    os.execvp(command[0], command)  # noqa: S606 # the command of the rank


if __name__ == "__main__":
    main()
