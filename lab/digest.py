# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a playbook and shows what is worth reading of what it says; the whole goes into a file."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

# A task that is silent for longer is named while it runs.
PATIENCE_SECONDS = 2.0
COLOUR = re.compile(r"\x1b\[[\d;]*m")
TASK = re.compile(r"(TASK|RUNNING HANDLER) \[")
UNEVENTFUL = re.compile(r"(ok|skipping): \[[^\]]+\]( => \(item=.*\))? *$|included: ")


class Digest:
    """Leaves out the tasks that neither changed nor told anything."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._gap = False

    def take(self, line: str) -> Iterator[str]:
        """What is to be shown now that this line came."""
        bare = COLOUR.sub("", line).rstrip("\n")
        if not bare:
            self._gap = True
        elif TASK.match(bare):
            self._held = [line]
        elif self._held and UNEVENTFUL.match(bare):
            self._held.append(line)
        else:
            if bare.startswith("PLAY "):
                self._held = []
            yield from self.pause()
            yield from self._shown(line)

    def pause(self) -> Iterator[str]:
        """What is to be shown if no line comes."""
        held, self._held = self._held, []
        for line in held:
            yield from self._shown(line)

    def _shown(self, line: str) -> Iterator[str]:
        if self._gap:
            self._gap = False
            yield "\n"
        yield line


def run(command: list[str], folder: Path, environment: dict[str, str], log: Path) -> int:
    """The exit code of a command whose lines are shown in short, and kept whole in a file."""
    lines: Queue[str] = Queue()
    digest = Digest()
    with (
        log.open("w", encoding="utf-8") as whole,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        Thread(target=_read, args=(process, lines), daemon=True).start()
        while line := _next(lines, digest):
            whole.write(line)
            _show(digest.take(line))
    return process.returncode


def _read(process: subprocess.Popen[str], lines: Queue[str]) -> None:
    """Hand on line by line, and an empty one at the end."""
    assert process.stdout
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def _next(lines: Queue[str], digest: Digest) -> str:
    """The next line; what was held back is shown if that takes long."""
    try:
        return lines.get(timeout=PATIENCE_SECONDS)
    except Empty:
        _show(digest.pause())
    return lines.get()


def _show(lines: Iterator[str]) -> None:
    print(*lines, sep="", end="", flush=True)
