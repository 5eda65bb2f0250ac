# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C during a maintenance window: once, the host at hand is finished and the window pauses; twice, the run ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from ansible import constants

PAUSE = "pause"
PREFIX = "dml-window-"
MESSAGE = (
    "\nThe window finishes the host at hand, and then stops and stays open. Press Ctrl-C again to end the run now, "
    "in the middle of that host.\n"
)


def pause_before_the_end() -> None:
    """Have the process of ansible-playbook pass the first Ctrl-C to the windows of its tasks, if one is in progress."""
    before = signal.getsignal(signal.SIGINT)
    if multiprocessing.parent_process() is not None or not callable(before):
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        # A window that was asked before does not keep the run from its end.
        pausing = [folder for folder in _windows() if not (folder / PAUSE).exists()]
        for folder in pausing:
            (folder / PAUSE).touch(mode=0o600)
        if pausing:
            os.write(1, MESSAGE.encode())
            return
        signal.signal(number, before)
        before(number, frame)

    interrupted.is_of_windows = True  # type: ignore[attr-defined]
    if not getattr(before, "is_of_windows", False):
        signal.signal(signal.SIGINT, interrupted)


def _windows() -> list[Path]:
    """Return the folders of the windows in progress, which the processes of their tasks wrote down."""
    return [Path(file.read_text(encoding="utf-8")) for file in Path(constants.DEFAULT_LOCAL_TMP).glob(f"{PREFIX}*")]


@contextlib.contextmanager
def in_progress(folder: Path) -> Iterator[None]:
    """Name the folder of a window to the process of ansible-playbook while the block runs."""
    note = Path(constants.DEFAULT_LOCAL_TMP) / f"{PREFIX}{os.getpid()}"
    (folder / PAUSE).unlink(missing_ok=True)
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    note.write_text(str(folder), encoding="utf-8")
    try:
        yield
    finally:
        note.unlink(missing_ok=True)
