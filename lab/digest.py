# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs a playbook and shows what is worth reading of what it says; the whole goes into a file."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

# A task that is silent for longer is named while it runs.
PATIENCE_SECONDS = 2.0
SIGN_SECONDS = 30.0
BLOCK_BYTES = 65536
COLOUR = re.compile(r"\x1b\[[\d;]*m")
TASK = re.compile(r"(TASK|RUNNING HANDLER) \[")
# Ansible calls it a failure that what it waits for is not there yet.
POLL = re.compile(r"ASYNC (POLL|OK) on |FAILED - RETRYING: ")
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
        elif POLL.match(bare):
            yield from self.pause()
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
    # Ansible leaves it to Python when lines go into a pipe.
    environment = {**environment, "PYTHONUNBUFFERED": "1"}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with (
        log.open("w", encoding="utf-8") as whole,
        subprocess.Popen(command, cwd=folder, env=environment, **streams) as process,
    ):
        show(_lines(process), whole)
    return process.returncode


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Line by line, and none where none comes."""
    assert process.stdout
    rest = b""
    while True:
        if select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]:
            if not (block := os.read(process.stdout.fileno(), BLOCK_BYTES)):
                break
            *lines, rest = (rest + block).split(b"\n")
            yield from (line.decode(errors="replace") + "\n" for line in lines)
        # What it left in the background may keep the pipe.
        elif process.poll() is not None:
            break
        else:
            yield None
    yield rest.decode(errors="replace")


def show(lines: Iterable[str | None], whole: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
    """Print lines in short, with a sign of life where the output is silent for long, and write all of them.

    None among the lines says that no line came for a while.
    """
    digest, spoke, signs = Digest(), clock(), 0
    for line in lines:
        shown = list(digest.pause() if line is None else digest.take(line))
        whole.write(line or "")
        silent = clock() - spoke
        if shown:
            spoke, signs = clock(), 0
        elif silent > (signs + 1) * SIGN_SECONDS:
            signs += 1
            shown = [f"  still running [{silent:.0f} s]\n"]
        print(*shown, sep="", end="", flush=True)
