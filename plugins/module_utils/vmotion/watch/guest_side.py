# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Runs on a node: what would end a job there while a peer is silent, the GPU's licence, and the newest checkpoint."""

# This file is sent to the node as text: it imports nothing of ours, and any Python from 3.8 on runs it.
from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

SYSCTLS = ("tcp_retries2", "tcp_keepalive_time", "tcp_keepalive_intvl", "tcp_keepalive_probes")
TIMERS = ("NCCL_", "UCX_", "HOROVOD_", "TORCH_NCCL_", "GLOO_", "OMPI_MCA_", "TORCHELASTIC_", "MASTER_ADDR")
# The launcher of Horovod signs its messages by a key in the environment.
SECRETS = ("KEY", "SECRET", "TOKEN", "PASS")
KEEPALIVE = "oob_tcp_keepalive_"
SECONDS = 15
BLOCK = 1 << 20
LONGEST_LINE = 1 << 20


def said(*command: str) -> str | None:
    """What a program prints; none where it is not there, or may not tell."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed programs
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def sysctls() -> dict[str, int]:
    """The kernel's own timers of TCP."""
    found = {}
    for name in SYSCTLS:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/sys/net/ipv4/{name}") as value:
            found[f"net.ipv4.{name}"] = int(value.read())
    return found


def rank_environment(folder: str) -> dict[str, str] | None:
    """The environment of a rank on this node, as far as it is about time-outs."""
    for path in sorted(glob.glob(os.path.join(folder, "rank*.jsonl"))):
        try:
            with open(path, "rb") as records:
                pid = int(json.loads(records.readline(LONGEST_LINE))["pid"])
            with open(f"/proc/{pid}/environ", "rb") as environ:
                pairs = [one.decode("utf-8", "replace").partition("=") for one in environ.read().split(b"\0")]
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
        timers = {name: value for name, _sign, value in pairs if name.startswith(TIMERS)}
        return {name: value for name, value in timers.items() if not any(word in name for word in SECRETS)}
    return None


def keepalive() -> dict[str, int]:
    """Open MPI's own timer, as it is configured here and as a running mpirun was told."""
    found = {}
    for line in (said("ompi_info", "--param", "oob", "tcp", "--level", "9", "--parsable") or "").splitlines():
        words = line.split(":")
        if KEEPALIVE in line and words[-2:-1] == ["value"]:
            with contextlib.suppress(ValueError, StopIteration):
                found[next(word for word in words if word.startswith(KEEPALIVE))] = int(words[-1])
    words = launcher()
    for index, word in enumerate(words[:-2]):
        if word in ("--mca", "-mca") and words[index + 1].startswith(KEEPALIVE):
            with contextlib.suppress(ValueError):
                found[words[index + 1]] = int(words[index + 2])
    return found


def launcher() -> list[str]:
    """The words of the mpirun that runs here."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as words:
            found = words.read().decode("utf-8", "replace").split("\0")
            if os.path.basename(found[0]) in ("mpirun", "orterun", "prterun"):
                return found
    return []


def rdma_devices(folder: str = "/sys/class/infiniband") -> list[str]:
    """Return the names of the RDMA devices."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def checkpoint(folder: str) -> dict[str, object] | None:
    """The newest file there, how old it is, and whether it is what its checksum beside it says."""
    files = [path for path in glob.glob(os.path.join(folder, "**"), recursive=True) if os.path.isfile(path)]
    files = [path for path in files if not path.endswith(".sha256")]
    if not files:
        return None
    newest = max(files, key=os.path.getmtime)
    verified = None
    with contextlib.suppress(OSError), open(f"{newest}.sha256") as beside:
        verified = beside.read().split()[:1] == [checksum(newest)]
    age = time.time() - os.path.getmtime(newest)
    return {"path": newest, "age_s": age, "bytes": os.path.getsize(newest), "verified": verified}


# The benchmark that writes checkpoints has such a function too: neither program has a module of ours beside it.
def checksum(path: str) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def main() -> None:
    """Tell it once."""
    folder, checkpoints = sys.argv[1:3]
    told = {
        "sysctls": sysctls(),
        "ssh": said("ssh", "-G", "peer"),
        "sshd": said("sshd", "-T") or said("sudo", "-n", "sshd", "-T") or said("/usr/sbin/sshd", "-T"),
        "mca": keepalive(),
        "mpirun": launcher(),
        "environment": rank_environment(folder),
        "nvidia": said("nvidia-smi", "-q"),
        "rdma": rdma_devices(),
        "checkpoint": checkpoint(checkpoints) if checkpoints else None,
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
