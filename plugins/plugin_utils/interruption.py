# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows a text if the user interrupts the task of an action with Ctrl-C."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

# The output of the playbook, with the place in its file.
_KEPT: list[int] = []


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
