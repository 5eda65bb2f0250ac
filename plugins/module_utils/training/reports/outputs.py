# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The outputs of a run: files that the training program wrote on a node, copied to the controller."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # the output of a node is read while it arrives
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from ...core.child_environment import without_account
from ...errors import Failed, Refused
from ...plan import Plan

LOOK_SECONDS = 120
MEGABYTE = 1_000_000
# A run need not have outputs, but its folder must be readable.
LOOK = "cd {0} || exit; cd {1} 2>/dev/null || exit 0; exec find . -type f -printf '%s %Ts %P\\0'"
ENTRY = re.compile(r"([0-9]{1,18} [0-9]{1,18}) (.+)", re.DOTALL)
SEND = "cd {0} && exec tar -cf - --null -T -"


class Outputs:
    """The copy of a folder of a node as a subject of the runner; other files in the copy are left as they are."""

    name = "outputs"

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._reach, self._folder = list(params["reach"]), str(params["folder"])
        self._dest, self._limit = Path(params["dest"]), int(params["limit"])
        self.target = f"{params['node']}:{self._folder}"
        self._there: dict[str, str] = {}

    def read(self) -> dict[str, Any]:
        """Return the size and the time of each output in its copy; None for a file that is not here."""
        self._there = self._listed()
        return {path: _stamp(self._dest / path) for path in self._there}

    def plan(self, state: Mapping[str, Any]) -> Plan:
        """Plan to copy new and changed files; refuse more than the limit."""
        size = sum(int(stamp.split()[0]) for stamp in self._there.values())
        if size > self._limit * MEGABYTE:
            cause = f"they have {size / MEGABYTE:.1f} MB, more than {self._limit} MB; they stay on the node"
            raise Refused(self.target, "copy the outputs", cause, "set training_outputs_limit, or copy them manually")
        return Plan(before=dict(state), after=dict(self._there))

    def apply(self, plan: Plan) -> None:
        """Copy the files that differ in one stream."""
        names = [change.key for change in plan.due]
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as errors:
            asked.write(b"".join(os.fsencode(f"./{name}") + b"\0" for name in names))
            asked.seek(0)
            command = self._on_node(SEND.format(shlex.quote(self._folder)))
            with subprocess.Popen(  # noqa: S603
                command, stdin=asked, stdout=subprocess.PIPE, stderr=errors, env=without_account(os.environ)
            ) as process:
                fault = self._received(process.stdout, names)
            errors.seek(0)
            printed = errors.read().decode("utf-8", "replace").strip()
        if process.returncode or fault:
            raise Failed(self.target, "copy the outputs", printed or fault, "copy them manually, they stay on the node")

    def _received(self, stream: IO[bytes] | None, names: Iterable[str]) -> str:
        expected = set(names)
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    name = member.name[2:] if member.name.startswith("./") else member.name
                    if name not in expected or not member.isfile():
                        return f"the node sent {name}, which is not one of its outputs"
                    self._write(name, member.mtime, archive.extractfile(member))
        except (OSError, tarfile.TarError) as error:
            return str(error)
        return ""

    def _write(self, name: str, time: float, content: Any) -> None:
        path = self._dest / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".dml-", dir=path.parent)
        try:
            with open(handle, "wb") as file:
                shutil.copyfileobj(content, file)
            os.utime(temporary, (time, time))
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    def _listed(self) -> dict[str, str]:
        """Return the size and the time of each file on the node."""
        try:
            command = self._on_node(LOOK.format(*map(shlex.quote, os.path.split(self._folder))))
            ended = subprocess.run(  # noqa: S603 # the connection of the inventory
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LOOK_SECONDS,
                check=False,
                env=without_account(os.environ),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(self.target, "list the outputs", str(error), "copy them manually") from error
        if ended.returncode:
            printed = ended.stderr.decode("utf-8", "replace").strip()
            raise Failed(self.target, "list the outputs", printed or f"exit code {ended.returncode}")
        return dict(self._entry(text) for text in os.fsdecode(ended.stdout).split("\0") if text)

    def _on_node(self, script: str) -> list[str]:
        """Return the command that runs a shell script on the node: sudo, which may end a connection, runs programs."""
        return [*self._reach, f"sh -c {shlex.quote(script)}"]

    def _entry(self, text: str) -> tuple[str, str]:
        entry = ENTRY.fullmatch(text)
        if not entry or ".." in entry[2].split("/") or entry[2].startswith("/"):
            raise Failed(self.target, "list the outputs", f"the node sent {text!r}")
        return entry[2], entry[1]


def _stamp(path: Path) -> str | None:
    """Return the size and the time of a file, or None."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return f"{status.st_size} {int(status.st_mtime)}"
