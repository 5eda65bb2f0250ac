"""Runs the commands of Ansible as forks of one process that has imported Ansible and what the plugins import.

Without it, nine tenths of the processor time of a playbook that is refused go into the same imports, because each fork
of Ansible for a task imports them again, and each playbook packs the same modules again. A fork has its own session,
environment, command line and output, as a new process has, and runs the main function of the command. A command with
other settings of Ansible has a separate process, and so has one that a test kills.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from dataclasses import dataclass
from multiprocessing.util import _exit_function
from pathlib import Path
from typing import IO, Any

from lab.simulator import ROOT
from tests.integration import warm_modules

COMMANDS = {
    "ansible": "ansible.cli.adhoc",
    "ansible-inventory": "ansible.cli.inventory",
    "ansible-playbook": "ansible.cli.playbook",
}
# Ansible reads these while it is imported.
EARLY = ("ANSIBLE_", "PYTHON", "LC_", "LANG", "HOME", "PATH")
# Each process that waits needs as much memory as Ansible itself.
MOST = 3
_WARM: list[Warm] = []
_SEEN: list[dict[str, str]] = []
_ONE = threading.Lock()


@dataclass(frozen=True)
class Warm:
    """The process that has imported Ansible, and the environment in which it did so."""

    early: dict[str, str]
    calls: socket.socket
    process: subprocess.Popen[bytes]
    modules: subprocess.Popen[bytes]

    def run(self, command: list[str], environment: dict[str, str], timeout: int) -> subprocess.CompletedProcess[str]:
        """Run a command in a fork, as subprocess.run does."""
        ours, theirs = socket.socketpair()
        with ours, tempfile.TemporaryFile() as output:
            requested = json.dumps({"command": command, "environment": environment}).encode()
            socket.send_fds(self.calls, [b"1"], [theirs.fileno(), output.fileno()])
            theirs.close()
            with ours.makefile("rw") as speech:
                speech.write(requested.decode() + "\n")
                speech.flush()
                return _ended(command, ours, speech, output, timeout)

    def end(self) -> None:
        """End the process, and wait for it: only then does its processor time count as that of the tests."""
        self.calls.close()
        self.process.wait(60)
        self.modules.terminate()
        self.modules.wait(60)


def _ended(
    command: list[str], ours: socket.socket, speech: IO[str], output: IO[bytes], timeout: int
) -> subprocess.CompletedProcess[str]:
    """Wait until a fork has ended, or end it after a time."""
    pid = int(speech.readline())
    ours.settimeout(timeout)
    try:
        code = int(speech.readline())
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired(command, timeout) from None
    output.seek(0)
    return subprocess.CompletedProcess(command, code, output.read().decode(errors="replace"))


def run(command: list[str], environment: dict[str, str], timeout: int) -> subprocess.CompletedProcess[str] | None:
    """Run a command of Ansible in a fork; return None the first time that it has other settings of Ansible."""
    early = {key: value for key, value in environment.items() if key.startswith(EARLY)}
    if os.path.basename(command[0]) not in COMMANDS:
        return None
    with _ONE:
        warm = next((each for each in _WARM if each.early == early), None)
        if warm is None and len(_WARM) < MOST and (not _WARM or early in _SEEN):
            warm = _begin(early)
            _WARM.append(warm)
        if early not in _SEEN:
            _SEEN.append(early)
    return warm.run(command, environment, timeout) if warm else None


def _begin(early: dict[str, str]) -> Warm:
    folder = Path(tempfile.mkdtemp(prefix="dml-warm-"))
    atexit.register(shutil.rmtree, folder)
    address, interpreter = str(folder / "modules"), folder / Path(sys.executable).name
    warm_modules.write_interpreter(interpreter, address)
    ours, theirs = socket.socketpair()
    with theirs:
        call = f"from tests.integration import warm; warm.serve({theirs.fileno()}, {str(interpreter)!r})"
        process = _start(call, early, theirs.fileno())
    modules = _start(f"from tests.integration import warm_modules; warm_modules.serve({address!r})", early)
    warm = Warm(early, ours, process, modules)
    atexit.register(warm.end)
    return warm


def _start(call: str, early: dict[str, str], *descriptors: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # The fork of a command writes its words over the last one.
        [sys.executable, "-c", call, "x" * 4096],
        cwd=ROOT,
        # Its forks record what they open, each for its test; what it opens itself is for all tests.
        env={
            **os.environ,
            **early,
            "PYTHONPATH": os.pathsep.join([str(ROOT), early.get("PYTHONPATH", "")]),
            "DML_OPENED": "",
        },
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
    )


def serve(number: int, interpreter: str) -> None:
    """Fork for each call, until the process that makes the calls has ended."""
    mains = {name: importlib.import_module(module) for name, module in COMMANDS.items()}
    importlib.import_module("ansible.executor.playbook_executor")
    importlib.import_module("ansible.plugins.strategy.linear")
    _import_collection()
    gc.freeze()
    # Forks end while the next call is awaited.
    signal.signal(signal.SIGCHLD, lambda *_: warm_modules.reap(os.WNOHANG))
    calls = socket.socket(fileno=number)
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(calls, 1, 2, socket.MSG_CMSG_CLOEXEC)
        if not message:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            warm_modules.reap(0)
            return
        if os.fork() == 0:
            calls.close()
            try:
                # The variable ansible_playbook_python has this value: modules of the controller run with it.
                sys.executable = interpreter
                _supervise(mains, *descriptors)
            finally:  # the folder of Ansible that all forks share goes with this process, not with one of them
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def _import_collection() -> None:
    """Import what the plugins import, not the plugins: a fork opens those itself, which is recorded for its test."""
    loader = importlib.import_module("ansible.plugins.loader")
    loader.init_plugin_loader([])
    warm_modules.import_all("plugin_utils", "module_utils")
    # Each command has its own finder of collections.
    loader._AnsibleCollectionFinder._remove()


def _supervise(mains: dict[str, Any], speech: int, output: int) -> None:
    """Start the command in a separate session, and send its process ID and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=speech) as connection, connection.makefile("rw") as lines:
        requested = json.loads(lines.readline())
        child = os.fork()
        if child == 0:
            os._exit(_command(mains, requested, output))
        lines.write(f"{child}\n")
        lines.flush()
        _pid, status = os.waitpid(child, 0)
        lines.write(f"{os.waitstatus_to_exitcode(status)}\n")


def _named(command: list[str]) -> None:
    """Write the command line over that of this process: a module finds the run above it by its command."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # arg_start and arg_end
    words = "\0".join(command).encode()[: end - begin - 1]
    ctypes.memmove(begin, words.ljust(end - begin, b"\0"), end - begin)


def _command(mains: dict[str, Any], requested: dict[str, Any], output: int) -> int:
    """Run the main function of a command, and return its exit code."""
    os.setsid()
    for descriptor, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
        os.dup2(source, descriptor)
    _named(requested["command"])
    os.environ.clear()
    os.environ.update(requested["environment"])
    sys.argv = requested["command"]
    # A user's command does not find the packages of the checkout.
    sys.path[:] = [place for place in sys.path if place not in {"", str(ROOT)}]
    try:
        mains[os.path.basename(sys.argv[0])].main(sys.argv)
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        _exit_function()  # os._exit skips it; it removes the folder of Ansible's sockets
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
