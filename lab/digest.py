"""Runs a playbook and shows the changes and messages of its output; the full output goes to a file."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from lab.task_digest import TaskDigest

# A task without output for longer than this is shown while it runs.
PATIENCE_SECONDS = 2.0
SIGN_SECONDS = 30.0
BLOCK_BYTES = 65536
COLOUR = re.compile(r"\x1b\[[\d;]*m")
TASK = re.compile(r"(?:TASK|RUNNING HANDLER) \[(?:[\w.]+ : )?(.*)\] \**$")
PLAY = re.compile(r"PLAY \[(.*)\] \**$")
RECAP = "PLAY RECAP "
# Ansible reports each retry of a wait as a failure.
POLL = re.compile(r"ASYNC (POLL|OK) on |FAILED - RETRYING: ")
WARNING = "[WARNING]: "


class Digest:
    """Shows the tasks that changed or reported something, each in a few lines."""

    def __init__(self) -> None:
        self._play, self._task = "", TaskDigest("")
        self._warnings: set[str] = set()
        self._is_recap = False

    def take(self, line: str) -> Iterator[str]:
        """Yield the lines to show after this line arrived."""
        bare = COLOUR.sub("", line).rstrip("\n")
        if found := TASK.match(bare) or PLAY.match(bare):
            yield from self.end()
            self._task = TaskDigest(found[1] if bare.startswith(("TASK", "RUNNING")) else "")
            self._play = found[1] if bare.startswith("PLAY") else self._play
        elif bare.startswith(RECAP):
            yield from self.end()
            self._is_recap = True
        elif POLL.match(bare):
            yield from self.pause()
        elif bare.startswith(WARNING):
            yield from self._under_play(self._warned(bare))
        elif not self._is_recap:
            yield from self._under_play(self._task.take(bare))

    def pause(self) -> Iterator[str]:
        """Yield the lines to show if no further line arrives."""
        yield from self._under_play(self._task.pause())

    def end(self) -> Iterator[str]:
        """Yield the rest of the last task."""
        yield from self._under_play(self._task.end())

    def _warned(self, bare: str) -> Iterator[str]:
        warning = bare.removeprefix(WARNING)
        # The same warning about another object is not shown again.
        if (about := warning.partition(": ")[2] or warning) not in self._warnings:
            self._warnings.add(about)
            yield f"  warning: {warning}\n"

    def _under_play(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines, the first of each play after the name of the play."""
        for line in lines:
            if self._play:
                yield f"\n {self._play}\n"
                self._play = ""
            yield line


def run(command: list[str], folder: Path, environment: dict[str, str], log: Path) -> int:
    """Run a command, show its output in short, write the full output to a file, and return the exit code."""
    # Without this, Python buffers Ansible's output, because it goes to a pipe.
    environment = {**environment, "PYTHONUNBUFFERED": "1"}
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with (
        log.open("w", encoding="utf-8") as whole,
        subprocess.Popen(command, cwd=folder, env=environment, **streams) as process,
    ):
        show(_lines(process), whole)
    return process.returncode


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Yield the output line by line, and None whenever no line arrives for a while."""
    assert process.stdout
    rest = b""
    while True:
        if select.select([process.stdout], [], [], PATIENCE_SECONDS)[0]:
            if not (block := os.read(process.stdout.fileno(), BLOCK_BYTES)):
                break
            *lines, rest = (rest + block).split(b"\n")
            yield from (line.decode(errors="replace") + "\n" for line in lines)
        # Background processes of the command can keep the pipe open.
        elif process.poll() is not None:
            break
        else:
            yield None
    yield rest.decode(errors="replace")


def show(lines: Iterable[str | None], whole: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
    """Print lines in short, with a sign of life if there is no output for long, and write all lines to a file.

    None among the lines means that no line arrived for a while.
    """
    digest, last, signs = Digest(), clock(), 0
    for line in lines:
        shown = list(digest.pause() if line is None else digest.take(line))
        whole.write(line or "")
        quiet = clock() - last
        if shown:
            last, signs = clock(), 0
        elif quiet > (signs + 1) * SIGN_SECONDS:
            signs += 1
            shown = [f"  still running [{quiet:.0f} s]\n"]
        print(*shown, sep="", end="", flush=True)
    print(*digest.end(), sep="", end="", flush=True)
