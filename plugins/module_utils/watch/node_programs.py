"""Runs a program on many nodes at once; a node that does not answer does not hide the answers of the others."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # one program on each of many nodes
import contextlib
import inspect
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ..core import replies
from ..core.child_environment import without_account
from ..core.findings import as_dicts
from ..durable.calls import ReachedNode
from ..guests import gpu_health
from . import gpu_program, guest_program, hang_program, hangs, signal_program, stack_program, transport_program

MOST_BYTES, CHUNK = 16 << 20, 1 << 16


Nodes = Sequence[ReachedNode]


def read_connections(nodes: Nodes, folder: str, timeout: float = 30.0) -> dict[str, Any]:
    """Read in parallel, on all nodes of a running job, the connections of each rank and the RDMA counters.

    Only root and the owner of a process can list its open files. ``folder`` is that of the records on the nodes.
    """
    return {"nodes": run_on_nodes(nodes, transport_program, [folder], timeout)}


def read_guests(nodes: Nodes, folder: str, checkpoints: str = "", timeout: float = 60.0) -> dict[str, Any]:
    """Read in parallel, in the guests of all nodes, the timers, the licence of the GPU and the latest checkpoint.

    A value that could not be read is None. ``checkpoints`` is the folder on the nodes with the job's checkpoints.
    """
    return {"nodes": run_on_nodes(nodes, guest_program, [folder, checkpoints], timeout)}


def read_gpus(
    nodes: Nodes,
    python: str = "",
    idle: bool = True,
    xid_seconds: float = 86400.0,
    gdr: str = "",
    timeout: float = 120.0,
) -> dict[str, Any]:
    """Read in parallel, on all nodes, the health of the GPUs, and whether the NCCL of a job starts on them.

    ``python`` is the interpreter of the job; without one, its NCCL is unknown. ``idle`` says that no process should use
    the GPUs, and ``xid_seconds`` is the age up to which errors in the log of the kernel count. ``gdr`` is the
    use of GPUDirect RDMA in the job; empty for a job without it.
    """
    answers = run_on_nodes(nodes, gpu_program, [python, *(["idle"] if idle else [])], timeout)
    found = {node: replies.printed(answer, replies.OF_GPUS) for node, answer in answers.items()}
    findings = gpu_health.all_findings(found, time.time() - xid_seconds, idle=idle, gdr=gdr)
    versions = {node: gpu_health.versions(answer) for node, answer in found.items()}
    return {"findings": as_dicts(findings), "nodes": versions}


def read_hang(nodes: Nodes, folder: str, recorders: str, timeout: float = 60.0) -> list[str]:
    """Find out which ranks of a silent job wait for others, from PyTorch's Flight Recorder and NCCL's RAS service.

    ``folder`` is that of the records, ``recorders`` that of the dumps. It changes nothing in the job.
    """
    return hangs.of_nodes(run_on_nodes(nodes, hang_program, [folder, recorders], timeout))


def read_stacks(nodes: Nodes, folder: str, timeout: float = 20.0) -> str:
    """Have the ranks of a silent job write their stacks, and return where they are, and which nodes did not answer."""
    return hangs.stack_sentences(run_on_nodes(nodes, stack_program, [folder], timeout))


def signal_ranks(nodes: Nodes, folder: str, number: str, timeout: float = 30.0) -> dict[str, object]:
    """Send a signal, such as ``USR1``, to the ranks on all nodes; none of them if a node does not answer.

    Launchers would end the job. ``ranks`` are those that got it, ``size`` is that of their job, and ``errors`` has the
    nodes that did not answer. Without a ``number``, the ranks are only found.
    """
    for each in ("", number) if number else ("",):
        answers = run_on_nodes(nodes, signal_program, [folder, each], timeout)
        found = {node: replies.printed(answer, {"ranks": [str], "size": int}) for node, answer in answers.items()}
        errors = {node: str(answer["error"]) for node, answer in found.items() if "error" in answer}
        if errors:
            return {"ranks": [], "size": 0, "errors": errors}
    ranks = sorted((rank for answer in found.values() for rank in answer["ranks"]), key=int)
    return {"ranks": ranks, "size": max((answer["size"] for answer in found.values()), default=0), "errors": {}}


def run_on_nodes(
    nodes: Nodes, program: ModuleType, words: Sequence[str], seconds: float
) -> dict[str, dict[str, object]]:
    """Return the JSON object that the program printed on each node, or its ``error``."""
    text = " ".join(shlex.quote(word) for word in ("python3", "-c", inspect.getsource(program), *words))
    running = [(str(node["name"]), _start([*node["reach"], text])) for node in nodes]
    deadline = time.monotonic() + seconds
    return {name: _answer(process, max(0.1, deadline - time.monotonic())) for name, process in running}


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the inventory names the command
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=without_account(os.environ),
        start_new_session=True,
    )


def _answer(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
    texts: dict[Any, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
    fault = _fault(texts, time.monotonic() + seconds)
    if fault:
        _kill(process)
        return {"error": fault}
    output, errors = (replies.lines(text.decode("utf-8", "replace").replace("\r\n", "\n")) for text in texts.values())
    if process.wait():
        return {"error": (errors.strip().splitlines() or [f"it ended with {process.returncode}"])[-1]}
    # A shell may print a greeting before it.
    found = signal_program.last_object(output.splitlines())
    return found or {"error": f"the answer is not a JSON object: {output.strip()[-200:] or 'nothing'}"}


def _fault(texts: dict[Any, bytearray], deadline: float) -> str:
    """Read streams to their ends; return why that is impossible: a node can answer nothing, or without end."""
    with selectors.DefaultSelector() as selector:
        for stream in texts:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                return "it did not answer in time"
            for key, _events in ready:
                data = os.read(key.fd, CHUNK)
                texts[key.fileobj] += data
                if len(texts[key.fileobj]) > MOST_BYTES:
                    return f"its answer has more than {MOST_BYTES >> 20} MiB"
                if not data:
                    selector.unregister(key.fileobj)
    return ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process without waiting for the end of its output, which its child processes may hold open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
