"""Runs the modules of warm commands as forks of one process that has imported what all modules import.

Without it, two thirds of the processor time of a playbook's modules go into the same imports. The first time that a
command of a test process calls a module, the module runs as a separate process, from the archive that Ansible sends,
as for a user; later ones are forks with the code of the checkout. A fork has the arguments, environment, folder and
output of the process in whose place it runs.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.util
import itertools
import marshal
import os
import re
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from multiprocessing.util import _exit_function
from pathlib import Path
from types import ModuleType
from typing import Any

from lab.simulator import ROOT

# A module, as Ansible names the file that it sends.
ARCHIVE = re.compile(r"AnsiballZ_(\w+)\.py")
COLLECTION = "ansible_collections.dml.vsphere.plugins"
HOLDER = f"{COLLECTION}.module_utils.maintenance.lock.holder"
SELF, OWN_PROCESS = b"s", b"p"
# Takes the place of Python: it has another program run a module, and is Python itself for all else.
INTERPRETER = """#!{python} -IS
import marshal, os, socket, sys
def itself():
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
if len(sys.argv) != 2 or "/AnsiballZ_" not in sys.argv[1]:
    itself()
place = socket.socket(socket.AF_UNIX)
try:
    place.connect({address!r})
except OSError:
    itself()
mask = os.umask(0)
os.umask(mask)
call = marshal.dumps((sys.argv[1], os.getpid(), os.getcwd(), mask, dict(os.environ)))
socket.send_fds(place, [len(call).to_bytes(4, "big")], [0, 1, 2])
place.sendall(call)
answer = place.recv(1)
if answer == b"p":
    itself()
sys.exit(answer[0] if answer else 137)
"""


def write_interpreter(path: Path, address: str) -> None:
    """Write the program that takes the place of Python."""
    path.write_text(INTERPRETER.format(python=sys.executable, address=address))
    path.chmod(0o755)


def serve(address: str) -> None:
    """Run modules for the interpreters that connect, until the process that started this one has ended."""
    holder = _imported()
    gc.freeze()
    known: set[str] = set()
    # Forks end while the next call is awaited; only one that was waited for counts as processor time of the tests.
    signal.signal(signal.SIGCHLD, lambda *_: reap(os.WNOHANG))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        while True:
            call, _address = listening.accept()
            with call:
                if not _take(call, known, holder):
                    continue
                listening.close()
                os._exit(0)


def reap(options: int) -> None:
    """Wait for the forks that have ended, or for all of them."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            continue


def _imported() -> ModuleType:
    """Import what the modules of the collection import, as a module finds it; return the finder of the run above."""
    collections = str(ROOT / ".ansible" / "collections")
    sys.path.insert(0, collections)
    import_all("module_utils")
    __import__("ansible.module_utils._internal._ansiballz._loader")
    __import__("ansible.module_utils.facts.default_collectors")
    # A module finds neither the collections of the controller nor the packages of the checkout.
    sys.path[:] = [place for place in sys.path if place not in {"", collections, str(ROOT)}]
    return sys.modules[HOLDER]


def import_all(*folders: str) -> None:
    """Import the files of these folders of plugins by the names that the collection gives them."""
    for folder in folders:
        for path in sorted((ROOT / "plugins" / folder).rglob("*.py")):
            if path.stem != "__init__" and not path.stem.endswith("_program"):
                __import__(f"{COLLECTION}.{'.'.join(path.relative_to(ROOT / 'plugins').with_suffix('').parts)}")


def _take(call: socket.socket, known: set[str], holder: ModuleType) -> bool:
    """Answer a call; return True in the fork that has run its module."""
    size, descriptors, _flags, _address = socket.recv_fds(call, 4, 3, socket.MSG_CMSG_CLOEXEC)
    length, content = int.from_bytes(size, "big"), b""
    while len(content) < length and (part := call.recv(length - len(content))):
        content += part
    archive, pid, folder, mask, environment = marshal.loads(content)
    name = ARCHIVE.fullmatch(os.path.basename(archive))
    if name is None or name[1] not in known or not _is_importable(name[1]):
        known.add(name[1] if name else "")
        call.sendall(OWN_PROCESS)
    elif os.fork() == 0:
        os.umask(mask)
        _take_over(descriptors)
        call.sendall(bytes([_run(archive, pid, folder, environment, holder)]))
        return True
    for descriptor in descriptors:
        os.close(descriptor)
    return False


def _is_importable(name: str) -> bool:
    """Return whether a module finds its imports in this process: one of this collection or of Ansible itself."""
    path = ROOT / "plugins" / "modules" / f"{name}.py"
    return path.exists() or importlib.util.find_spec(f"ansible.modules.{name}") is not None


def _take_over(descriptors: list[int]) -> None:
    """Make these the input and output; no other copy may keep the output open if the module leaves a process."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _run(archive: str, pid: int, folder: str, environment: dict[str, str], holder: Any) -> int:
    """Run a module in this fork, and return its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [archive]
    above = holder._ancestors

    def ancestors(process: int) -> Iterator[int]:
        return itertools.chain([pid], above(pid)) if process == os.getpid() else above(process)

    holder._ancestors, os.getppid = ancestors, lambda: pid
    code = 0
    try:
        runpy.run_path(archive, run_name="__main__")
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        # As the interpreter does at its end, which os._exit skips.
        threading._shutdown()
        atexit._run_exitfuncs()
        _exit_function()
        sys.stdout.flush()
        sys.stderr.flush()
    return code & 0xFF
