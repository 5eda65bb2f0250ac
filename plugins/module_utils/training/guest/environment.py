"""The environment of a training program on a node: its requirements on top of the stack's packages."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # pip may take longer than a task
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from ...core.child_environment import without_account
from ...errors import Failed, Refused
from ...guests.file_ownership import exposed
from ...plan import Plan, State
from ...runner import Params
from ..launch import requirements

LOOK_SECONDS = 60
COMPLETE, LOCK = "complete", "lock.json"
# Prints the folders and the packages of an interpreter.
STACK = """
import importlib.metadata, json, site
packages = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions() if each.metadata["Name"]}
print(json.dumps({"folders": site.getsitepackages(), "packages": packages}))
"""
# Prints the packages in one folder.
PACKAGES = """
import importlib.metadata, json, sys
found = importlib.metadata.distributions(path=[sys.argv[1]])
print(json.dumps(sorted(f"{each.metadata['Name']}=={each.version}" for each in found if each.metadata["Name"])))
"""


class Environment:
    """The environment as a subject of the runner; runs with the same requirements and the same stack share one."""

    name = "environment"

    def __init__(self, params: Params) -> None:
        self._params = params
        self._python, self._text = str(params["python"]), str(params["requirements"])
        self.target = f"requirements over {self._python}"
        stack = self._stack()
        self._folders, self._packages = list(stack["folders"]), dict(stack["packages"])
        code, folder = str(params["code"]), str(params["folder"])
        key = requirements.key(self._text, self._packages, self._python, code, folder)
        self._path = os.path.join(str(params["store"]), key)
        self.python = os.path.join(self._path, "bin", "python")

    @property
    def lock(self) -> list[str]:
        """Return the packages of the environment, without those of the stack, as NAME==VERSION."""
        try:
            with open(os.path.join(self._path, LOCK), encoding="utf-8") as file:
                return [str(line) for line in json.load(file)]
        except (OSError, ValueError):
            return []

    def read(self) -> dict[str, Any]:
        """Return the interpreter; None if the environment is incomplete. Refuse another user's interpreter."""
        if cause := exposed(self._path):
            remedy = "run this as the user of the folder, or set training_dir to a folder that only you can change"
            raise Refused(self.target, "use the environment", cause, remedy)
        is_complete = os.path.exists(os.path.join(self._path, COMPLETE))
        return {"python": self.python if is_complete else None}

    def plan(self, state: State) -> Plan:
        return Plan(before=dict(state), after={"python": self.python})

    def apply(self, _plan: Plan) -> None:
        """Create the environment; only one of several nodes that share a disk creates it."""
        os.makedirs(os.path.dirname(self._path), mode=0o755, exist_ok=True)
        with open(f"{self._path}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.read()["python"] is None:
                self._create()

    def _create(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        self._run([self._python, "-m", "venv", "--without-pip", self._path], "create the environment")
        self._write("constraints.txt", requirements.constraints(self._packages))
        self._write("requirements.txt", self._text)
        folder = self._run(
            [self.python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], "find its packages"
        )
        # The packages of the environment come first, then those of the stack.
        lines = "".join(f"import site; site.addsitedir({each!r})\n" for each in self._folders)
        self._write(os.path.join(folder.strip(), "dml_stack.pth"), lines)
        options = ["--disable-pip-version-check", "--no-input", "--quiet"]
        # Only requirements that refer to files need their place in the folder; others may come from pyproject.toml.
        own = requirements.refers_to_files(self._text)
        file = os.path.basename(self._params["name"]) if own else os.path.join(self._path, "requirements.txt")
        given = ["-r", file, "-c", os.path.join(self._path, "constraints.txt")]
        self._run([self.python, "-m", "pip", "install", *options, *given], "install the requirements")
        self._write(LOCK, self._run([self.python, "-c", PACKAGES, folder.strip()], "list its packages"))
        self._write(COMPLETE, "")

    def _write(self, name: str, text: str) -> None:
        # Requirements may contain a token for their index, and only the owner uses them.
        mode = 0o600 if name == "requirements.txt" else 0o644
        path, flags = os.path.join(self._path, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(path, flags, mode), "w", encoding="utf-8") as file:
            file.write(text)

    def _run(self, command: Sequence[str], tried: str) -> str:
        folder = os.path.dirname(os.path.join(str(self._params["folder"]), str(self._params["name"])))
        try:
            ended = subprocess.run(  # noqa: S603 # the interpreter of the stack
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=self._params["timeout"],
                env=without_account(os.environ),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(self.target, tried, str(error)) from error
        if ended.returncode:
            remedy = "correct the requirements; the packages of the stack keep their versions"
            raise Failed(self.target, tried, requirements.cause(ended.stderr or ended.stdout, self._packages), remedy)
        return ended.stdout

    def _stack(self) -> dict[str, Any]:
        try:
            ended = subprocess.run(  # noqa: S603 # the interpreter of the stack
                [self._python, "-c", STACK],
                capture_output=True,
                text=True,
                check=True,
                timeout=LOOK_SECONDS,
                env=without_account(os.environ),
            )
            return dict(json.loads(ended.stdout))
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            remedy = "set training_python to the interpreter of the stack"
            raise Refused(self.target, "read the packages of the stack", str(error), remedy) from error
