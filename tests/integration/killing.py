"""Kills a running ansible as the kernel would, all of it or its main process alone, and lists what is left of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lab.simulator import Centre, Simulator
from tests.integration.ansible import Outcome

LOOK_SECONDS = 0.02


@contextlib.contextmanager
def beside(vcenter: Simulator, call: Callable[..., Outcome], *given: Any, **options: Any) -> Iterator[Future[Outcome]]:
    """Run a module in a thread; if the test fails, end the server, for whose answer the thread may wait for hours."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(call, *given, **options)
        except BaseException:
            vcenter.stop()
            raise


def wait_for(condition: Callable[[], Any], seconds: float = 300) -> None:
    """Until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for does not come"
        time.sleep(LOOK_SECONDS)


def has_started(vcenter: Centre, method: str, times: int = 1) -> Callable[[], bool]:
    """Return whether that many calls of this method have reached the server."""
    return lambda: [write["method"] for write in vcenter.writes()].count(method) >= times


def has_answered(vcenter: Centre, method: str, times: int = 1) -> Callable[[], bool]:
    """Return whether the server has answered that many calls of this method, so that time passes for their tasks."""
    return lambda: [(write["method"], write["result"]) for write in vcenter.writes()].count((method, "ok")) >= times


def has_waited(vcenter: Centre, calls: int = 2) -> Callable[[], bool]:
    """Return whether a client waits for a task: its first call for updates returns at once, the second one waits."""
    return lambda: vcenter.calls().get("WaitForUpdatesEx", 0) >= calls


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it ended meanwhile
            continue
        found.setdefault(parent, []).append(int(status.parent.name))
    return found


def tree(pid: int) -> list[int]:
    """A process with all its descendants, itself first; workers of ansible are in their own sessions."""
    children, found = _children(), [pid]
    for one in found:
        found.extend(children.get(one, []))
    return found


def kill_all(running: subprocess.Popen[str]) -> list[int]:
    """The main process, then all that it had started; nothing is left of it."""
    every = tree(running.pid)
    for pid in every:
        _kill(pid)
    running.wait()
    wait_for(lambda: not any(_alive(pid) for pid in every))
    return []


def kill_main(running: subprocess.Popen[str]) -> list[int]:
    """The main process alone; what is left of it."""
    rest = tree(running.pid)[1:]
    _kill(running.pid)
    running.wait()
    return rest


def wait_for_end(pids: list[int]) -> None:
    """Until the processes have ended by themselves."""
    wait_for(lambda: not any(_alive(pid) for pid in pids))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
