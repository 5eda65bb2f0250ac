"""Runs on a node: reports the connections of the ranks on it, and the bytes that its RDMA devices sent."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

import contextlib
import glob
import ipaddress
import json
import os
import sys

ESTABLISHED = "01"
TAIL_BYTES = 1 << 16
SUMMARY_BYTES = 1 << 20  # a larger file is not the summary of a rank
WORD_BYTES = 4  # port_xmit_data counts words
MTUS, HEADER_BYTES = (4096, 2048, 1024, 512, 256), 88  # the payloads of RoCE v2, and the headers of a packet
SYS = os.environ.get("DML_SYS", "/sys")  # nodes of the lab have RDMA cards only in a separate folder


def last_record(path: str) -> dict[str, object]:
    """Return the newest complete record of a rank."""
    with open(path, "rb") as records:
        records.seek(max(0, os.fstat(records.fileno()).st_size - TAIL_BYTES))
        lines = records.read().split(b"\n")[:-1]
    for line in reversed(lines):
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and "mark" not in record:
                return record
    return {}


def open_files(pid: int) -> list[str]:
    """Return the open files of a process; raise OSError if it belongs to another user."""
    folder = f"/proc/{pid}/fd"
    files = []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # the process closed it in the meantime
            files.append(os.readlink(os.path.join(folder, name)))
    return files


def address(text: str) -> str:
    """Return an address from the kernel's table, which has 32-bit words, each with its last byte first."""
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]
    parsed = ipaddress.ip_address(b"".join(words))
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


def connections(pid: int, inodes: set[str]) -> list[list[str]]:
    """Return the established TCP connections of a process except loopback, each as local and remote address."""
    pairs = []
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}") as lines:
                rows = [line.split() for line in lines][1:]
        except OSError:
            continue
        for row in rows:
            if row[3] == ESTABLISHED and row[9] in inodes:
                here, there = (address(row[column].split(":")[0]) for column in (1, 2))
                if not ipaddress.ip_address(there).is_loopback:
                    pairs.append([here, there])
    return sorted(pairs)


def start_ticks(pid: int) -> int:
    """Return the start of a process in kernel ticks since boot; raise OSError if it has ended."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rsplit(b")", 1)[1].split()[19])


def rank_on(path: str) -> dict[str, object]:
    """Return the process of a rank, its last step and its connections."""
    rank: dict[str, object] = {"rank": None, "pid": None, "step": None}
    try:
        last = last_record(path)
        rank = {name: last.get(name) for name in rank}
        pid = int(str(last.get("pid") or 0))
        files = open_files(pid)
        if last.get("start") not in (None, start_ticks(pid)):
            return {**rank, "error": f"the rank has ended, and another process has its PID {pid}"}
    except OSError as error:
        return {**rank, "error": f"{error.filename}: {error.strerror}"}
    except ValueError:
        return {**rank, "error": f"{path}: its newest record names no process"}
    inodes = {name[len("socket:[") : -1] for name in files if name.startswith("socket:[")}
    has_rdma = any(name.startswith("/dev/infiniband/uverbs") for name in files)
    return {**rank, "connections": connections(pid, inodes), "rdma_open": has_rdma}


def number(*path: str) -> int | None:
    """Return the counter in a file of the kernel; None if the device does not count."""
    try:
        with open(os.path.join(*path)) as value:
            return int(value.read())
    except (OSError, ValueError):
        return None


def sent_by(device: str, port: str) -> int | None:
    """Return the bytes that a port sent. Soft-RoCE counts only packets, here assumed to be of the largest size."""
    words, packets = number(port, "counters", "port_xmit_data"), number(port, "hw_counters", "sent_pkts")
    if words is not None:
        return words * WORD_BYTES
    try:
        with open(os.path.join(device, "parent")) as parent:
            mtu = number(SYS, "class", "net", parent.read().strip(), "mtu")
    except OSError:
        mtu = None
    if packets is None or mtu is None:
        return None
    return packets * next((size for size in MTUS if size + HEADER_BYTES <= mtu), MTUS[-1])


def devices() -> list[dict[str, object]]:
    """Return the RDMA devices with the bytes that they sent; None for a device that does not count."""
    listed: list[dict[str, object]] = []
    for path in sorted(glob.glob(os.path.join(SYS, "class", "infiniband", "*"))):
        link = os.path.join(path, "device", "driver")
        driver = os.path.basename(os.path.realpath(link)) if os.path.exists(link) else None  # Soft-RoCE has none
        counted = [sent_by(path, port) for port in sorted(glob.glob(os.path.join(path, "ports", "*")))]
        known = [count for count in counted if count is not None]
        sent = sum(known) if known else None
        listed.append({"device": os.path.basename(path), "driver": driver, "sent_bytes": sent})
    return listed


def checksums(folder: str) -> dict[str, object]:
    """Return the checksums of the final parameters of the ranks on this node, by file; empty while they train."""
    by_file = {}
    for path in sorted(glob.glob(os.path.join(folder, "summary*.json"))):
        with contextlib.suppress(OSError, ValueError, RecursionError), open(path) as summary:
            if os.fstat(summary.fileno()).st_size > SUMMARY_BYTES:
                continue
            content = json.load(summary)
            if isinstance(content, dict) and content.get("parameters_sha256"):
                by_file[os.path.basename(path)] = content["parameters_sha256"]
    return by_file


def main() -> None:
    ranks = [rank_on(path) for path in sorted(glob.glob(os.path.join(sys.argv[1], "rank*.jsonl")))]
    sys.stdout.write(json.dumps({"ranks": ranks, "devices": devices(), "checksums": checksums(sys.argv[1])}) + "\n")


if __name__ == "__main__":
    main()
