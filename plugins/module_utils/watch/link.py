# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""One open connection to one node, by which its records come; if it breaks it is opened again, and nothing is lost."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import node_side

AGAIN_SECONDS = 1.0
CHUNK = 1 << 16


@dataclass(eq=False)
class Link:
    """``reach`` is the command that runs what is appended to it on the node, such as ssh with its options.

    Where a watch goes on that an earlier process began, ``late`` gets the lines that were there before this one looked.
    """

    name: str
    reach: Sequence[str]
    folder: str
    offsets: dict[str, int] = field(default_factory=dict)
    heard: float = 0.0
    breaks: int = 0
    said: str = ""
    is_resumed: bool = False
    late: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _rest: bytes = b""
    _not_before: float = 0.0

    def open(self) -> int | None:
        """Connect if that is due; the file descriptor to wait for, None where there is none yet."""
        if self._process is None and time.monotonic() >= self._not_before:
            program = ["python3", "-u", "-c", inspect.getsource(node_side), self.folder, json.dumps(self.offsets)]
            self._process = subprocess.Popen(  # noqa: S603 - the inventory names the command
                [*self.reach, " ".join(shlex.quote(word) for word in program)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._rest = b""
        return self._stream

    def read(self) -> list[str]:
        """The lines of records that came; at the end of the stream the link is closed, to be opened again."""
        data = os.read(self._stream, CHUNK) if self._stream is not None else b""
        if not data:
            self._broke()
            return []
        self.heard = time.monotonic()
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line for one in whole for line in self._taken(json.loads(one))]

    def close(self) -> None:
        """End the connection, and what runs at its other end with it."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        _out, told = self._process.communicate()
        self.said = told.decode(errors="replace").strip()[-500:] or self.said
        self._process = None

    @property
    def _stream(self) -> int | None:
        return self._process.stdout.fileno() if self._process and self._process.stdout else None

    def _taken(self, message: dict[str, Any]) -> list[str]:
        if not message:
            return []
        self.offsets[message["file"]] = message["offset"]
        lines: list[str] = message["lines"]
        if self.is_resumed and message["old"] and not self.breaks:
            self.late += lines
            return []
        return lines

    def _broke(self) -> None:
        self.breaks += 1
        self._not_before = time.monotonic() + AGAIN_SECONDS
        self.close()
