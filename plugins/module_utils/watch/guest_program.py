"""Runs on a node: reports timers that end a job while a peer is silent, the GPU's licence and the newest checkpoint."""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

# pylint: disable=ansible-bad-function  # this runs on a node, without Ansible
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
# The launcher of Horovod signs its messages with a key from the environment.
SECRETS = ("KEY", "SECRET", "TOKEN", "PASS")
# Jobs of this collection have the folder of their records in this variable.
RECORDS = "DML_RECORDS"
KEEPALIVE = "oob_tcp_keepalive_"
SLURM = {"slurmd", "slurmctld", "slurmdbd"}
SECONDS = 15
BLOCK = 1 << 20
LONGEST_LINE = 1 << 20


def output_of(*command: str, errors: list[str] | None = None) -> str | None:
    """Return the output of a program; None if it is missing or fails, and the reason in ``errors``."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed programs
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if errors is not None:
        errors.append(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def sysctls() -> dict[str, int]:
    """Return the TCP timers of the kernel."""
    timers = {}
    for name in SYSCTLS:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/sys/net/ipv4/{name}") as value:
            timers[f"net.ipv4.{name}"] = int(value.read())
    return timers


# The program that reads the transport has the same function: neither program can import from the collection.
def start_ticks(pid: int) -> int:
    """Return the start of a process in kernel ticks since boot; raise OSError if it has ended."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rsplit(b")", 1)[1].split()[19])


def rank_environment(folder: str) -> dict[str, str] | None:
    """Return the variables of a rank on this node that set time-outs; None if no rank's environment can be read."""
    for pid in ranks(folder):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                pairs = [item.decode("utf-8", "replace").partition("=") for item in environ.read().split(b"\0")]
        except OSError:
            continue
        timers = {name: value for name, _sign, value in pairs if name.startswith(TIMERS)}
        return {name: value for name, value in timers.items() if not any(word in name for word in SECRETS)}
    return None


def keepalive(mpirun: list[str]) -> dict[str, int]:
    """Return the keepalive timers of Open MPI from its configuration and from the options of a running mpirun."""
    timers = {}
    for line in (output_of("ompi_info", "--param", "oob", "tcp", "--level", "9", "--parsable") or "").splitlines():
        words = line.split(":")
        if KEEPALIVE in line and words[-2:-1] == ["value"]:
            with contextlib.suppress(ValueError, StopIteration):
                timers[next(word for word in words if word.startswith(KEEPALIVE))] = int(words[-1])
    for index, word in enumerate(mpirun[:-2]):
        if word in ("--mca", "-mca") and mpirun[index + 1].startswith(KEEPALIVE):
            with contextlib.suppress(ValueError):
                timers[mpirun[index + 1]] = int(mpirun[index + 2])
    return timers


def launcher(folder: str) -> list[str]:
    """Return the command line of the mpirun of the job whose records are in a folder; empty if several may be it."""
    commands, own = {}, []
    above = {parent for rank in ranks(folder) for parent in parents(rank)}
    for path in sorted(glob.glob("/proc/[0-9]*/cmdline")):
        pid = int(path.split("/")[2])
        with contextlib.suppress(OSError), open(path, "rb") as file:
            words = file.read().decode("utf-8", "replace").split("\0")
            if os.path.basename(words[0]) in ("mpirun", "orterun", "prterun"):
                commands[pid] = words
                if pid in above or f"{RECORDS}={folder}".encode() in environment_of(pid):
                    own.append(pid)
    # On other nodes, daemons start the ranks: there, no process above a rank is its launcher.
    possible = own[:1] or list(commands)
    return commands[possible[0]] if len(possible) == 1 else []


def environment_of(pid: int) -> list[bytes]:
    """Return the variables of a process; none if it belongs to another user."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return environ.read().split(b"\0")
    except OSError:
        return []


def ranks(folder: str) -> list[int]:
    """Return the processes of the ranks on this node, from the first record of each."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "rank*.jsonl"))):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            with open(path, "rb") as records:
                record = json.loads(records.readline(LONGEST_LINE))
            pid = int(record["pid"])
            # The rank may have ended, and another process may have its PID.
            if record.get("start") in (None, start_ticks(pid)):
                found.append(pid)
    return found


def parents(pid: int) -> list[int]:
    """Return the processes above a process."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        while pid > 1 and pid not in found:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                pid = int(stat.read().rsplit(b")", 1)[1].split()[1])
            found.append(pid)
    return found


def rdma_devices(folder: str = "/sys/class/infiniband") -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def slurm() -> dict[str, object] | None:
    """Return the daemons of Slurm on this node, its configuration and the jobs that start or end here."""
    daemons = set()
    for path in glob.glob("/proc/[0-9]*/comm"):
        with contextlib.suppress(OSError), open(path) as name:
            daemons.add(name.read().strip())
    daemons &= SLURM
    if not daemons:
        return None
    changing = output_of("squeue", "--noheader", "--states=CF,CG", "--nodelist=localhost", "--format=%i")
    errors: list[str] = []
    config = output_of("scontrol", "show", "config", errors=errors)
    return {
        "daemons": sorted(daemons),
        "config": config,
        "changing": (changing or "").split(),
        "error": "".join(errors),
    }


def checkpoint(folder: str) -> dict[str, object] | None:
    """Return the newest file in the folder, its age, and whether it matches the checksum file next to it."""
    files = [path for path in glob.glob(os.path.join(folder, "**"), recursive=True) if os.path.isfile(path)]
    files = [path for path in files if not path.endswith(".sha256")]
    if not files:
        return None
    newest = max(files, key=os.path.getmtime)
    verified = None
    with contextlib.suppress(OSError), open(f"{newest}.sha256") as file:
        verified = file.read().split()[:1] == [checksum(newest)]
    age = time.time() - os.path.getmtime(newest)
    return {"path": newest, "age_s": age, "bytes": os.path.getsize(newest), "verified": verified}


# The benchmark that writes checkpoints has the same function: neither program can import from the collection.
def checksum(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def main() -> None:
    folder, checkpoints = sys.argv[1:3]
    mpirun = launcher(folder)
    sshd = output_of("sshd", "-T") or output_of("sudo", "-n", "sshd", "-T") or output_of("/usr/sbin/sshd", "-T")
    report = {
        "sysctls": sysctls(),
        "ssh": output_of("ssh", "-G", "peer"),
        "sshd": sshd,
        "mca": keepalive(mpirun),
        "mpirun": mpirun,
        "environment": rank_environment(folder),
        "nvidia": output_of("nvidia-smi", "-q"),
        "rdma": rdma_devices(),
        "slurm": slurm(),
        "checkpoint": checkpoint(checkpoints) if checkpoints else None,
    }
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
