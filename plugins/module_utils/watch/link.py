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
# The other end reads 1 MiB at once, and JSON may write a byte as six.
LONGEST_MESSAGE = 8 << 20


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
    noise: int = 0
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
        self._rest = self._rest[-LONGEST_MESSAGE:]
        return [line for one in whole for line in self._taken(one)]

    def close(self) -> None:
        """End the connection, and what runs at its other end with it."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        _out, told = self._process.communicate()
        self.said = _said(told) or self.said
        self._process = None

    @property
    def _stream(self) -> int | None:
        return self._process.stdout.fileno() if self._process and self._process.stdout else None

    def _taken(self, told: bytes) -> list[str]:
        """The lines in a message; what a shell says at login and other noise is kept as said, and skipped."""
        message = _message(told)
        if message is None or "error" in message:
            self.noise += message is None
            self.said = _said(told) if message is None else f"{message.get('file')}: {message['error']}"
            return []
        if not message:
            return []
        self.offsets[message["file"]] = message["offset"]
        lines: list[str] = message["lines"]
        if self.is_resumed and message.get("old") and not self.breaks:
            self.late += lines
            return []
        return lines

    def _broke(self) -> None:
        self.breaks += 1
        self._not_before = time.monotonic() + AGAIN_SECONDS
        self.close()


def _message(told: bytes) -> dict[str, Any] | None:
    """A message of the program on the node, also behind a word without a line end; None for anything else."""
    for begin in (0, max(0, told.find(b"{"))):
        try:
            message = json.loads(told[begin:])
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and (not message or "error" in message or _has_lines(message)):
            return message
    return None


def _has_lines(message: dict[str, Any]) -> bool:
    name, offset, lines = (message.get(key) for key in ("file", "offset", "lines"))
    # pylint: disable-next=unidiomatic-typecheck # True is no number of bytes
    is_named = isinstance(name, str) and type(offset) is int and offset >= 0
    return is_named and isinstance(lines, list) and all(isinstance(line, str) for line in lines)


def _said(told: bytes) -> str:
    return told.decode(errors="replace").strip()[-500:]
