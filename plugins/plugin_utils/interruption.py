# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C: shows a text, ends an observation, or has a window pause after the host at hand; a second ends the run."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from ansible import constants

# The output of the playbook, with the place in its file.
_KEPT: list[int] = []
PAUSE = "pause"
PREFIX = "dml-window-"
MESSAGE = (
    "\nThe window finishes the host at hand, and then stops and stays open. Press Ctrl-C again to end the run now, "
    "in the middle of that host.\n"
)


@contextlib.contextmanager
def shown_if_interrupted(text: Callable[[], str]) -> Iterator[None]:
    """Show a text if Ansible passes on Ctrl-C to the process of this task, before the process ends as before."""
    before = signal.getsignal(signal.SIGINT)

    def show(number: int, frame: FrameType | None) -> None:
        _show(text())
        signal.signal(number, before)
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, show)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def keep_output() -> None:
    """Keep the output of the playbook for the processes of its tasks, which start as copies of this one."""
    if multiprocessing.parent_process() is None and not _KEPT:
        _KEPT.append(os.dup(1))


def _show(text: str) -> None:
    """Write to the output of the playbook: Ansible no longer shows what its tasks display when it ends."""
    if _KEPT:
        with contextlib.suppress(OSError):
            os.write(_KEPT[0], f"\n{text}\n".encode(errors="replace"))
        return
    path = f"/proc/{os.getppid()}/fd/1"
    with contextlib.suppress(OSError):
        # The playbook would write over a line in its file.
        if os.path.isfile(path):
            return
        handle = os.open(path, os.O_WRONLY | os.O_NOCTTY)
        with open(handle, "w", encoding="utf-8", errors="replace") as output:
            output.write(f"\n{text}\n")


def pause_before_the_end() -> None:
    """Have the process of ansible-playbook pass the first Ctrl-C to the windows of its tasks, if one is in progress."""
    before = signal.getsignal(signal.SIGINT)
    if multiprocessing.parent_process() is not None or not callable(before):
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        # A window that was asked before does not keep the run from its end, nor does one that cannot be asked.
        requested = [_is_requested(folder) for folder in _windows()]
        if any(requested):
            # Ctrl-C also ends a program that reads the output, such as tee.
            with contextlib.suppress(OSError):
                os.write(1, MESSAGE.encode())
            return
        signal.signal(number, before)
        before(number, frame)

    vars(interrupted)["is_of_windows"] = True
    if not getattr(before, "is_of_windows", False):
        signal.signal(signal.SIGINT, interrupted)


def _is_requested(folder: Path) -> bool:
    """Ask a window to pause; return whether it is the first request, and could be written down."""
    try:
        (folder / PAUSE).touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True


def _windows() -> list[Path]:
    """Return the folders of the windows in progress, which the processes of their tasks wrote down."""
    found = []
    for file in Path(constants.DEFAULT_LOCAL_TMP).glob(f"{PREFIX}*"):
        # A window that ends meanwhile removes its file, and one that begins has not filled it yet.
        with contextlib.suppress(OSError):
            found.append(file.read_text(encoding="utf-8"))
    return [Path(folder) for folder in found if folder]


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


@contextlib.contextmanager
def ended_by_signal(ask: Callable[[], None]) -> Iterator[None]:
    """Have SIGTERM and SIGINT, which Ansible passes on to this process, end an observation with its report."""
    signals = (signal.SIGTERM, signal.SIGINT)
    former = {number: signal.signal(number, lambda *_: ask()) for number in signals}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
