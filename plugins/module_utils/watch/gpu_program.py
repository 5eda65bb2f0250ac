"""Runs on a node: reports the state of its GPUs, their errors in the kernel's log, memory pools, and the job's NCCL.

On a node whose GPUs no process should use, DCGM's short diagnostic runs too.
"""

# This file is sent to the node as text: it imports only the standard library, and any Python from 3.8 on runs it.
from __future__ import annotations

# pylint: disable=ansible-bad-function  # this runs on a node, without Ansible
import json
import re
import subprocess
import sys

SECONDS, DIAGNOSTIC_SECONDS = 30, 60
# Every line of a kernel log can be an error of a GPU.
MOST_LINES = 1000
MISSING = 127
# The modes of a GPU that is not shared, on hardware or in a virtual machine.
WHOLE = {"None", "Pass-Through"}
# CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, _GPU_DIRECT_RDMA_SUPPORTED and _DMA_BUF_SUPPORTED.
ATTRIBUTES = {"pools": "115", "gpudirect": "116", "dma_buf": "124"}
# The modules of the kernel with which an RDMA card reads the memory of a GPU.
MODULES = ("nvidia_peermem", "nv_peer_mem")
# A separate program asks the driver, because a sick GPU may end it or never answer. It prints a list per attribute.
ASK = """
import ctypes, json, sys
cuda, count, answers = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), []
if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
    raise SystemExit(1)
for attribute in map(int, sys.argv[1:]):
    answers.append([])
    for number in range(count.value):
        device, value = ctypes.c_int(), ctypes.c_int()
        failed = cuda.cuDeviceGet(ctypes.byref(device), number)
        failed = failed or cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        answers[-1].append(None if failed else value.value)
print(json.dumps(answers))
"""
# PyTorch loads NCCL from the package nvidia.nccl of its environment, others the library of the system.
NCCL = """
import ctypes, glob, importlib.util, json
try:
    spec = importlib.util.find_spec("nvidia.nccl")
except ImportError:
    spec = None
folders = list(spec.submodule_search_locations or []) if spec else []
files = [file for folder in folders for file in glob.glob(folder + "/lib/libnccl.so*")]
version = ctypes.c_int()
if ctypes.CDLL((files + ["libnccl.so.2"])[0]).ncclGetVersion(ctypes.byref(version)):
    raise SystemExit(1)
print(json.dumps(version.value))
"""


def run(*command: str, seconds: int = SECONDS) -> tuple[int, str, str]:
    """Return exit code, output and errors of a program; a missing program has a shell's exit code for that."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed programs
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        return MISSING, "", ""
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, "", str(error)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def smi() -> dict[str, str | None]:
    """Return the report of nvidia-smi, or why it failed; neither without the program."""
    code, output, errors = run("nvidia-smi", "-q", "-x")
    if code == MISSING:
        return {"smi": None, "failure": None}
    message = (output if code else "") + " " + errors
    return {"smi": None if code else output, "failure": message.strip() or "no message" if code else None}


def log() -> list[str] | None:
    """Return the lines of the kernel's log about GPUs, with their time since 1970; None if they cannot be read."""
    for command in (
        ("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-unix"),
        ("sudo", "-n", "journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-unix"),
    ):
        code, output, _errors = run(*command)
        # The kernel log is never empty, unless this user must not read it.
        if code == 0 and output.strip():
            return [line for line in output.splitlines() if "NVRM:" in line][-MOST_LINES:]
    return None


def diagnostic(report: str) -> str | None:
    """Return the output of DCGM's short diagnostic; None without DCGM, with MIG, and for a vGPU."""
    modes = set(re.findall("<virtualization_mode>([^<]*)", report))
    if "<current_mig>Enabled" in report or not modes or modes - WHOLE:
        return None
    code, output, errors = run("dcgmi", "diag", "-r", "1", "-j", seconds=DIAGNOSTIC_SECONDS)
    return None if code == MISSING else output.strip() or errors.strip()


def value(*command: str) -> object:
    """Return the JSON value that a program prints; None if it fails."""
    code, output, _errors = run(*command)
    try:
        return json.loads(output) if code == 0 else None
    except ValueError:
        return None


def attributes() -> dict[str, object]:
    """Return the attributes of each GPU by their names, as the driver reports them; None if it does not answer."""
    answers = value(sys.executable, "-c", ASK, *ATTRIBUTES.values())
    known = answers if isinstance(answers, list) else [None] * len(ATTRIBUTES)
    return dict(zip(ATTRIBUTES, known))


def modules() -> list[str] | None:
    """Return the loaded modules of MODULES; None if they cannot be read."""
    try:
        with open("/proc/modules", encoding="utf-8") as file:
            loaded = {line.split(" ", 1)[0] for line in file}
    except OSError:
        return None
    return [name for name in MODULES if name in loaded]


def main() -> None:
    python, is_idle = sys.argv[1], sys.argv[2:] == ["idle"]
    found = smi()
    has_gpus = found["smi"] is not None
    report = {
        **found,
        "log": log() if has_gpus or found["failure"] else None,
        "diagnostic": diagnostic(found["smi"]) if found["smi"] and is_idle else None,
        **(attributes() if has_gpus else dict.fromkeys(ATTRIBUTES)),
        "modules": modules(),
        "nccl": value(python, "-c", NCCL) if has_gpus and python else None,
    }
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
