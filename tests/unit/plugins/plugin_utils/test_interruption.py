"""Ctrl-C shows in the output of its playbook what a task or a vMotion test leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.trials.evidence.facts import Facts
from plugins.plugin_utils import interruption, trial
from tests.unit.simulation.world import World

ROOT = Path(__file__).resolve().parents[4]
PLAYBOOK = """
import multiprocessing, os, signal
from plugins.plugin_utils.interruption import keep_output, shown_if_interrupted

def task():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(0))
    with shown_if_interrupted(lambda: "esx1 may be out of service"):
        os.kill(os.getpid(), signal.SIGINT)

os.write(1, b"before\\n")
keep_output()
child = multiprocessing.get_context("fork").Process(target=task)
child.start()
child.join()
os.write(1, b"after\\n")
"""


def test_interrupted_task_shows_its_text_in_redirected_output(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with output.open("w") as file:
        subprocess.run([sys.executable, "-c", PLAYBOOK], stdout=file, check=True, cwd=ROOT, timeout=120)

    assert output.read_text() == "before\n\nesx1 may be out of service\nafter\n"


def test_ctrl_c_names_the_unfinished_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown: list[str] = []
    monkeypatch.setattr(interruption, "_show", shown.append)
    site: Any = SimpleNamespace(folder=tmp_path)

    # A shell starts background jobs with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), trial.TEST.attended(Facts(World().settings), site):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    (text,) = shown
    assert f"is unfinished in {tmp_path}, and holds the lock of the cluster" in text


@pytest.fixture
def pausing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A process in which Ctrl-C pauses windows, with its folder for their notes."""
    monkeypatch.setattr(interruption.constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interruption.pause_before_the_end()
        yield tmp_path
    finally:
        signal.signal(signal.SIGINT, before)


def test_window_pauses_when_the_output_has_no_reader(
    pausing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_pipe(_handle: int, _text: bytes) -> int:
        raise BrokenPipeError  # Ctrl-C in `ansible-playbook ... | tee log` ended tee first

    folder = tmp_path / "window"
    folder.mkdir()
    monkeypatch.setattr(interruption.os, "write", broken_pipe)
    with interruption.in_progress(folder):
        os.kill(os.getpid(), signal.SIGINT)

        assert (folder / interruption.PAUSE).exists()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_a_run_without_pausable_windows(pausing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pausing)
    (pausing / f"{interruption.PREFIX}1").touch()  # not filled yet
    (pausing / f"{interruption.PREFIX}2").symlink_to(pausing / "gone")
    (pausing / f"{interruption.PREFIX}3").write_text(str(pausing / "removed"))

    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)

    assert not (pausing / interruption.PAUSE).exists()
