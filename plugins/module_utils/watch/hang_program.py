"""Runs on a node: collects the Flight Recorders of the ranks of a job there, and asks NCCL's RAS service."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

# pylint: disable=ansible-bad-function  # this runs on a node, without Ansible
import contextlib
import glob
import io
import json
import os
import pickle  # nosec B403 # only Plain reads: no object of a class, so that no code of the file runs
import re
import socket
import sys
import time

# PyTorch looks at its pipe each second, and writes the dump of all its collectives soon after.
DUMP_SECONDS = 10.0
# RAS waits some seconds for a rank that does not answer.
RAS_SECONDS = 20.0
USUAL_ADDRESS = "localhost:28028"
MOST_BYTES = 1 << 24
# The first operations that are not completed, the latest ones, and the latest one of each group are enough.
MOST_ENTRIES = 50
LONGEST_LINE = 1 << 20
KEYS = (
    "process_group",
    "pg_id",
    "collective_seq_id",
    "profiling_name",
    "state",
    "retired",
    "time_created_ns",
    "is_p2p",
)


class Plain(pickle.Unpickler):
    """Reads only texts, numbers, lists and mappings: the ranks run a user's program, which could write anything."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def request_dumps(folder: str) -> int:
    """Have each rank write its recorder, and return the number of ranks that can."""
    requested = 0
    for path in glob.glob(os.path.join(folder, "pipe_*")):
        # Without a rank that reads it, the pipe cannot be opened.
        with contextlib.suppress(OSError):
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, b"1\n")
                requested += 1
            finally:
                os.close(pipe)
    return requested


def files(folder: str) -> dict[int, str]:
    found = {}
    for path in glob.glob(os.path.join(folder, "rank_*")):
        match = re.fullmatch(r"rank_(\d{1,6})", os.path.basename(path))
        if match:
            found[int(match[1])] = path
    return found


def dumps(folder: str) -> dict[int, dict[str, object]]:
    """Return the recorders of the ranks on this node, in their present state if the ranks can still write them."""
    began = time.time()
    requested = request_dumps(folder)
    while time.time() < began + DUMP_SECONDS:
        fresh = [path for path in files(folder).values() if os.path.getmtime(path) >= began]
        if len(fresh) >= requested:
            break
        time.sleep(0.5)
    return {rank: dump for rank, path in files(folder).items() if (dump := read(path)) is not None}


def read(path: str) -> dict[str, object] | None:
    """Return the latest entries of a dump; None if it is incomplete or not plain data."""
    try:
        with open(path, "rb") as file:
            content = Plain(io.BytesIO(file.read(MOST_BYTES))).load()
        entries = needed([entry for entry in content["entries"] if isinstance(entry, dict)])
        kept = [{key: entry.get(key) for key in KEYS} for entry in entries]
        groups = {name: dict(content.get(name) or {}) for name in ("pg_config", "pg_status")}
        return {"entries": kept, **groups}
    except Exception:  # a damaged pickle raises errors of many kinds
        return None


def needed(entries: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the entries that show where a rank waits, in their order."""
    places = range(len(entries))
    pending = [
        place for place in places if not entries[place].get("retired") and entries[place].get("state") != "completed"
    ]
    latest = {str(entries[place].get("process_group")): place for place in places}
    kept = {*pending[:MOST_ENTRIES], *places[-MOST_ENTRIES:], *list(latest.values())[:MOST_ENTRIES]}
    return [entries[place] for place in sorted(kept)]


def address(records: str) -> str:
    """Return the address of RAS from the environment of a rank on this node."""
    for path in sorted(glob.glob(os.path.join(records, "rank*.jsonl"))):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            with open(path, "rb") as file:
                pid = int(json.loads(file.readline(LONGEST_LINE))["pid"])
            with open(f"/proc/{pid}/environ", "rb") as environ:
                pairs = [item.decode("utf-8", "replace").partition("=") for item in environ.read().split(b"\0")]
            values = {name: value for name, _sign, value in pairs}
            if values.get("NCCL_RAS_ADDR"):
                return values["NCCL_RAS_ADDR"]
    return USUAL_ADDRESS


def ras(where: str) -> str | None:
    """Return the answer of RAS; None if no rank of this node has the service."""
    host, _colon, port = where.rpartition(":")
    answer = b""
    try:
        with socket.create_connection((host, int(port)), RAS_SECONDS) as connection:
            connection.sendall(b"verbose status\n")
            connection.shutdown(socket.SHUT_WR)
            while len(answer) < MOST_BYTES:
                part = connection.recv(1 << 16)
                if not part:
                    break
                answer += part
    except (OSError, ValueError):
        return answer.decode("utf-8", "replace") or None
    return answer.decode("utf-8", "replace")


def main() -> None:
    records, recorders = sys.argv[1:3]
    report = {"ras": ras(address(records)), "dumps": dumps(recorders)}
    sys.stdout.write(json.dumps(report, default=str) + "\n")


if __name__ == "__main__":
    main()
