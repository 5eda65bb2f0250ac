# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""One look at many nodes at once, by a program that is sent to each; a node that does not answer hides no other."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

# Arguments of the modules that look into nodes, as the documentation fragment of nodes describes them.
NODE = {
    "name": {"type": "str", "required": True},
    "reach": {"type": "list", "elements": "str", "required": True},
}
NODES = {
    "nodes": {"type": "list", "elements": "dict", "required": True, "options": NODE},
    "folder": {"type": "str", "required": True},
}


def look(nodes: Sequence[Mapping[str, Any]], program: ModuleType, words: Sequence[str], seconds: float) -> Any:
    """By node what the program printed as JSON, or ``error``; ``reach`` is the command that runs a command there."""
    text = " ".join(shlex.quote(word) for word in ("python3", "-c", inspect.getsource(program), *words))
    running = [(str(node["name"]), _begin([*node["reach"], text])) for node in nodes]
    deadline = time.monotonic() + seconds
    return {name: _answer(process, max(0.1, deadline - time.monotonic())) for name, process in running}


def _begin(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - the inventory names the command
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _answer(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    try:
        told, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        return {"error": "it did not answer in time"}
    if process.returncode:
        return {"error": (said.strip().splitlines() or [f"it ended with {process.returncode}"])[-1]}
    return _object(told) or {"error": f"it answered no JSON object: {told.strip()[-200:] or 'nothing'}"}


def _kill(process: subprocess.Popen[str]) -> None:
    """End it; what it left behind may hold its output open for ever, which is not waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def _object(told: str) -> dict[str, Any] | None:
    """The last line that is a JSON object: before it a shell may have said something at login."""
    for line in reversed(told.splitlines()):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return None
