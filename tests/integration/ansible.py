"""Runs modules and playbooks as a user does, and modules in this process, and returns their output."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ansible.module_utils import _internal
from ansible.module_utils.common import warnings
from ansible.module_utils.testing import patch_module_args

from lab.simulator import BYTECODE, ROOT, Simulator
from plugins.module_utils.maintenance.lock import holder
from tests.integration import warm

BIN = Path(sys.executable).parent
# For hosts that are this machine: with the Python of the command that runs, modules are forks (warm_modules.py).
PYTHON = "{{ ansible_playbook_python }}"
_RUNNING = threading.RLock()


@dataclass(frozen=True)
class Outcome:
    """How an ansible command ended."""

    rc: int
    out: str
    result: dict[str, Any]

    @property
    def changed(self) -> bool:
        return bool(self.result.get("changed"))

    @property
    def changes(self) -> dict[str, int]:
        """How many tasks of a playbook changed something, by host."""
        recap = re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", self.out, re.MULTILINE)
        return {name: int(count) for name, count in recap}

    @property
    def msg(self) -> str:
        return str(self.result.get("msg", ""))

    def host(self, name: str) -> dict[str, Any]:
        """The entry of one ESXi host in a module's result."""
        (entry,) = [entry for entry in self.result["hosts"] if entry["host"] == name]
        return dict(entry)


def this_run() -> dict[str, str]:
    """The variable that names this process as the run of a module: here no command of ansible is above it."""
    me = holder._described(os.getpid())
    assert me is not None
    return {holder.RUN: f"{me.machine}.{me.pid}.{me.started}"}


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Raise an error if another thread runs a module at the same time, which would mix up their arguments."""
    assert _RUNNING.acquire(blocking=False), f"{name} cannot run in this process while another thread runs a module"
    try:
        yield
    finally:
        _RUNNING.release()


class Ansible:
    """The ansible commands of this environment, with a given set of variables."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            **environment,
            "ANSIBLE_HOME": str(ROOT / ".ansible"),
            # By default it is in the home of the user, who need not have one. One value for all keeps processes warm.
            "ANSIBLE_REMOTE_TEMP": str(ROOT / ".ansible" / "remote"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".ansible" / "collections"),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_DEPRECATION_WARNINGS": "1",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "PYTHONPATH": str(BYTECODE),
        }

    def module(self, name: str, /, *, check: bool = False, **options: Any) -> Outcome:
        """Run one module of the collection in this process: the quick way, without the ansible command around it.

        Its arguments, its environment and its output are those of the process: two at once would take each other's.
        """
        arguments = {**options, "_ansible_check_mode": check, "_ansible_diff": True}
        answer, code = io.StringIO(), 0
        with contextlib.ExitStack() as stack:
            stack.enter_context(_alone(name))
            stack.enter_context(mock.patch.dict(os.environ, self.environment))
            stack.enter_context(mock.patch.object(sys, "argv", [f"{name}.py"]))
            stack.enter_context(patch_module_args(arguments))
            stack.enter_context(contextlib.redirect_stdout(answer))
            # A module of a user has its own process, and its own warnings.
            stack.enter_context(mock.patch.object(warnings, "_global_warnings", type(warnings._global_warnings)()))
            # Another test of this process may have loaded the controller, which shows warnings at once.
            stack.enter_context(mock.patch.object(_internal, "is_controller", False))
            if threading.current_thread() is not threading.main_thread():
                # ansible-core 2.22 has a signal write the stacks of a module, which only main threads can ask for.
                stack.enter_context(mock.patch.object(signal, "signal"))
            try:
                importlib.import_module(f"plugins.modules.{name}").main()
            except SystemExit as end:
                code = int(end.code or 0)
        result = json.loads(answer.getvalue())
        # From ansible-core 2.22 on, these tell the controller what to mask; a user never sees them.
        masked = result.pop("_ansible_new_secrets", None)
        return Outcome(code, json.dumps(result) if masked else answer.getvalue(), result)

    def adhoc(
        self, name: str, /, *, collection: str = "dml.vsphere", check: bool = False, diff: bool = False, **options: Any
    ) -> Outcome:
        """Run one module by the ansible command, as a user does."""
        command = [str(BIN / "ansible"), "localhost", "-c", "local", "-i", "localhost,", "-m", f"{collection}.{name}"]
        command += ["-a", json.dumps(options)]
        command += ["--check"] if check else []
        command += ["--diff"] if diff else []
        done = self.run(command, ANSIBLE_CALLBACK_RESULT_FORMAT="json")
        _host, _arrow, answer = done.stdout.partition(" => {")
        result = json.JSONDecoder().raw_decode("{" + answer)[0] if answer else {}
        return Outcome(done.returncode, done.stdout, result)

    def playbook(self, playbook: str | Path, *arguments: str, timeout: int = 600) -> Outcome:
        """Run a playbook of the checkout."""
        done = self.run([str(BIN / "ansible-playbook"), str(playbook), *arguments], timeout=timeout)
        return Outcome(done.returncode, done.stdout, {})

    def start(self, playbook: str | Path, *arguments: str) -> subprocess.Popen[str]:
        """Begin a playbook without waiting for it."""
        return self.begin([str(BIN / "ansible-playbook"), str(playbook), *arguments])

    def start_module(self, name: str, /, **options: Any) -> subprocess.Popen[str]:
        """Begin one module by the ansible command without waiting for it."""
        command = [str(BIN / "ansible"), "localhost", "-c", "local", "-i", "localhost,", "-m", f"dml.vsphere.{name}"]
        return self.begin([*command, "-a", json.dumps(options)])

    def begin(self, command: list[str]) -> subprocess.Popen[str]:
        """Begin a command in its own process group, without waiting for it."""
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def run(self, command: list[str], timeout: int = 300, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the environment of these tests; only other collections may use what Ansible deprecated."""
        environment = {**self.environment, **more}
        done = warm.run(command, environment, timeout) or subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
            check=False,
        )
        is_ours = not any("community." in word for word in command)
        assert not (is_ours and "[DEPRECATION WARNING]" in done.stdout), done.stdout
        return done


# The fixtures that start a data centre, and that run Ansible against one.
Start, AnsibleFor = Callable[..., Simulator], Callable[..., Ansible]
