# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A long step of the lab is shown while it runs."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

from lab import progress
from lab.progress import CLEAR, Progress
from lab.simulator import ROOT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_terminal_shows_one_line_that_moves_and_keeps_it_when_the_step_ends() -> None:
    out, clock = Terminal(), Clock()
    with Progress(out, clock) as shown:
        shown("Building the image")
        clock.now += 7
        shown.show()
        clock.now += 5
        shown("Importing the image")
        clock.now += 1
    lines = out.getvalue().split(CLEAR)
    assert lines == ["", "   7 s  Building the image", "  12 s  Building the image\n", "   1 s  Importing the image\n"]


def test_a_file_gets_each_step_at_its_begin_and_its_seconds_now_and_then() -> None:
    out, clock = io.StringIO(), Clock()
    with Progress(out, clock) as shown:
        shown("Building the image")
        clock.now += 60
        shown.show()
    assert out.getvalue() == "Building the image\n  60 s  Building the image\n"


def test_the_last_line_of_a_log_with_words_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"of an earlier command\n")
    since = log.stat().st_size
    assert progress.last_line(log, since) == ""
    log.write_bytes(b"of an earlier command\n" + b"x" * 9000 + b"\nSetting up \xff\x1b[31mopenmpi\n\n")
    assert progress.last_line(log, since) == "Setting up \ufffd[31mopenmpi"


def test_a_command_has_its_output_in_the_log_and_its_exit_status(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "lab.progress", str(log), "sh", "-c", "echo one; echo two >&2; exit 3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, log.read_text()) == (3, "one\ntwo\n")
