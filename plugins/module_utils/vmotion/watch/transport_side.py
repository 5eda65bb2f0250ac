# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Runs on a node: by what the ranks of a job on it are connected, and what its RDMA devices have sent."""

# This file is sent to the node as text: it imports nothing of ours, and any Python from 3.8 on runs it.
from __future__ import annotations

import contextlib
import glob
import ipaddress
import json
import os
import sys

ESTABLISHED = "01"
TAIL_BYTES = 1 << 16
WORD_BYTES = 4  # port_xmit_data counts words
MTUS, HEADER_BYTES = (4096, 2048, 1024, 512, 256), 88  # of RoCE v2, and what a packet has besides
SYS = os.environ.get("DML_SYS", "/sys")  # nodes of the lab have no RDMA card but in a folder of their own


def last_record(path: str) -> dict[str, object]:
    """The newest whole record of a rank."""
    with open(path, "rb") as records:
        records.seek(max(0, os.fstat(records.fileno()).st_size - TAIL_BYTES))
        lines = records.read().split(b"\n")[:-1]
    for line in reversed(lines):
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(line)
            if isinstance(found, dict) and "mark" not in found:
                return found
    return {}


def open_files(pid: int) -> list[str]:
    """What a process has open; a process of somebody else does not tell."""
    folder = f"/proc/{pid}/fd"
    found = []
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            found.append(os.readlink(os.path.join(folder, name)))
    return found


def address(text: str) -> str:
    """An address as the kernel's table writes it: 32-bit words, each with its last byte first."""
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]
    found = ipaddress.ip_address(b"".join(words))
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def connections(pid: int, inodes: set[str]) -> list[list[str]]:
    """The established TCP connections of a process, each as its own address and that of its peer; none to itself."""
    found = []
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
                    found.append([here, there])
    return sorted(found)


def rank_on(path: str) -> dict[str, object]:
    """One rank: its process, how far it is, and by what it is connected."""
    told: dict[str, object] = {"rank": None, "pid": None, "step": None}
    try:
        last = last_record(path)
        told = {name: last.get(name) for name in told}
        pid = int(str(last.get("pid") or 0))
        files = open_files(pid)
    except OSError as error:
        return {**told, "error": f"{error.filename}: {error.strerror}"}
    except ValueError:
        return {**told, "error": f"{path}: its newest record names no process"}
    inodes = {name[len("socket:[") : -1] for name in files if name.startswith("socket:[")}
    has_rdma = any(name.startswith("/dev/infiniband/uverbs") for name in files)
    return {**told, "connections": connections(pid, inodes), "rdma_open": has_rdma}


def number(*path: str) -> int | None:
    """What a file of the kernel counts; a device may count nothing."""
    try:
        with open(os.path.join(*path)) as value:
            return int(value.read())
    except (OSError, ValueError):
        return None


def sent_by(device: str, port: str) -> int | None:
    """The bytes that a port sent; Soft-RoCE counts packets alone, taken for as large as its card lets them be."""
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
    """The RDMA devices with the bytes that they sent; one that does not count has none."""
    found: list[dict[str, object]] = []
    for path in sorted(glob.glob(os.path.join(SYS, "class", "infiniband", "*"))):
        link = os.path.join(path, "device", "driver")
        driver = os.path.basename(os.path.realpath(link)) if os.path.exists(link) else None  # Soft-RoCE has none
        counted = [sent_by(path, port) for port in sorted(glob.glob(os.path.join(path, "ports", "*")))]
        known = [one for one in counted if one is not None]
        sent = sum(known) if known else None
        found.append({"device": os.path.basename(path), "driver": driver, "sent_bytes": sent})
    return found


def checksums(folder: str) -> dict[str, object]:
    """The checksums of the parameters that the ranks here ended with, by file; none while they train."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "summary*.json"))):
        with contextlib.suppress(OSError, ValueError, RecursionError), open(path) as summary:
            told = json.load(summary)
            if isinstance(told, dict) and told.get("parameters_sha256"):
                found[os.path.basename(path)] = told["parameters_sha256"]
    return found


def main() -> None:
    """Tell it once."""
    ranks = [rank_on(path) for path in sorted(glob.glob(os.path.join(sys.argv[1], "rank*.jsonl")))]
    sys.stdout.write(json.dumps({"ranks": ranks, "devices": devices(), "checksums": checksums(sys.argv[1])}) + "\n")


if __name__ == "__main__":
    main()
