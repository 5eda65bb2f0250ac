"""A controller in its own process: it runs the steps of a scenario, and can be killed at any call to the server.

It is forked from a process that has everything imported, which makes a thousand of them affordable.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.simulator import Simulator
from plugins.module_utils.maintenance.lock import holder
from tests.attack.scenarios import Step
from tests.integration.ansible import Ansible

# A run that takes longer hangs: an undisturbed run takes a second or two, and a fault costs at most its time-outs.
DEADLINE = 120.0
MOMENTS = ("sent", "answered")


@dataclass(frozen=True)
class Kill:
    """When the controller kills itself: at the n-th call, once it is sent or once it is answered; or after seconds."""

    call: int = 0
    moment: str = "sent"
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"kill -9 when call {self.call} was {self.moment}" if self.call else f"kill -9 after {self.seconds:.3f} s"
        )


@dataclass
class Ended:
    """How a controller ended: what each step said, a traceback where there was one, and whether it hung."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    raised: str = ""
    hung: bool = False
    killed: bool = False
    seconds: float = 0.0

    @property
    def failures(self) -> list[str]:
        """The sentences of the steps that failed."""
        return [str(one["msg"]) for one in self.messages if one["rc"]]


def carry_out(
    vcenter: Simulator, folder: Path, steps: Sequence[Step], *, kill: Kill | None = None, timeout: int = 60
) -> Ended:
    """Run the steps in their own process group."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_controller(vcenter, folder, steps, (kill, timeout, write))
    os.close(write)
    return _attend(pid, read)


def _attend(pid: int, read: int) -> Ended:
    began, text, hung = time.monotonic(), b"", False
    with os.fdopen(read, "rb", buffering=0) as result:
        while True:
            left = began + DEADLINE - time.monotonic()
            ready, _write, _error = select.select([result], [], [], max(0.0, left))
            if not ready:
                hung = True
                os.killpg(pid, signal.SIGKILL)
                break
            more = result.read(65536)
            if not more:
                break
            text += more
    _pid, status = os.waitpid(pid, 0)
    ended = Ended(seconds=time.monotonic() - began, hung=hung)
    for line in text.decode().splitlines():
        one = json.loads(line)
        if "raised" in one:
            ended.raised = one["raised"]
        else:
            ended.messages.append(one)
    ended.killed = os.WIFSIGNALED(status) and not hung
    return ended


def _be_the_controller(
    vcenter: Simulator, folder: Path, steps: Sequence[Step], how: tuple[Kill | None, int, int]
) -> None:
    """Never returns."""
    kill, timeout, write = how
    os.setsid()
    try:
        me = holder._described(os.getpid())
        run = {holder.RUN: f"{me.machine}.{me.pid}.{me.started}"} if me else {}
        ansible = Ansible({**vcenter.environment, **run}, folder)
        if kill:
            _die_at(kill)
        _run(ansible, steps, timeout, write)
    except BaseException:
        _send(write, {"raised": traceback.format_exc()})
    os._exit(0)


def _run(ansible: Ansible, steps: Sequence[Step], timeout: int, write: int) -> None:
    failed = False
    for step in steps:
        if failed and not step.always:
            continue
        done = ansible.module(step.module, timeout=timeout, **step.options)
        failed = failed or bool(done.rc)
        kept = {"changed": done.changed, "msg": done.msg, "warnings": done.result.get("warnings", [])}
        _send(write, {"module": step.module, "rc": done.rc, **kept})


def _send(write: int, what: dict[str, Any]) -> None:
    os.write(write, (json.dumps(what) + "\n").encode())


def _die_at(kill: Kill) -> None:
    if kill.seconds:
        threading.Timer(kill.seconds, _die).start()
        return
    name = "endheaders" if kill.moment == "sent" else "getresponse"
    before: Callable[..., Any] = getattr(http.client.HTTPConnection, name)
    lock, count = threading.Lock(), 0

    def counted(self: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal count
        answer = before(self, *arguments, **more)
        with lock:
            count += 1
            if count == kill.call:
                _die()
        return answer

    setattr(http.client.HTTPConnection, name, counted)


def _die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def drawn_kill(chance: random.Random, calls: int, seconds: float) -> Kill:
    """A kill at a random call, or at a random moment of the time that an undisturbed run takes."""
    if chance.random() < 0.5:
        return Kill(call=chance.randint(1, calls), moment=chance.choice(MOMENTS))
    return Kill(seconds=chance.uniform(0.001, 0.8 * seconds))
