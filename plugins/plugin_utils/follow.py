# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the events of a long module call while the module runs, one line each."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils.core.names import printable
from ..module_utils.durable.calls import Result

POLL_SECONDS = 0.3
OPTION = "progress_file"


class Follower:
    """Reads complete lines as they are appended to a file, until the end of the ``with`` block."""

    def __init__(self, path: str, show: Callable[[dict[str, object]], None]) -> None:
        self._path, self._show = path, show
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        with open(self._path, encoding="utf-8", errors="replace") as events:
            held = ""
            while True:
                last = self._ended.wait(POLL_SECONDS)
                *lines, held = (held + events.read()).split("\n")
                for line in lines:
                    self._show_line(line)
                if last:
                    return

    def _show_line(self, line: str) -> None:
        """Show one line; a line that is not a valid event is shown unchanged, so that it does not end the task."""
        try:
            event = json.loads(line)
            shown = {"about": str(event["about"]), "what": str(event["what"]), "seconds": float(event["seconds"])}
        except (ValueError, KeyError, TypeError, RecursionError):
            shown = {"about": "progress", "what": line, "seconds": 0.0}
        self._show(shown)


def line_of(event: dict[str, object]) -> str:
    """Return an event as one line; names come from others and must not control the terminal."""
    return "  " + printable(f"{event['about']}: {event['what']} [{event['seconds']:.1f} s]")


class FollowingAction(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """An action that runs the module with its name and shows the events of the module."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: object = None, task_vars: object = None) -> Result:
        """Run the module, with a file for its events if they can be followed."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if not self._can_follow():
            result.update(self._execute_module(task_vars=task_vars, wrap_async=self._task.async_val))
            return result
        display = Display()
        with _private_file() as path, Follower(path, lambda event: display.display(line_of(event))):
            arguments = {**self._task.args, OPTION: path}
            result.update(self._execute_module(module_args=arguments, task_vars=task_vars))
        result.get("invocation", {}).get("module_args", {}).pop(OPTION, None)
        return result

    def _can_follow(self) -> bool:
        """Return whether the module can write the file: on this machine, as this user, not in the background."""
        here = self._connection.transport == "local" and not self._connection.become and not self._task.async_val
        return here and bool(boolean(self._task.args.get("progress", True), strict=False))


@contextmanager
def _private_file() -> Iterator[str]:
    """Yield a new file that only this user can read and write."""
    handle, path = tempfile.mkstemp(prefix="dml-progress-", dir=constants.DEFAULT_LOCAL_TMP)
    os.close(handle)
    try:
        yield path
    finally:
        os.unlink(path)
