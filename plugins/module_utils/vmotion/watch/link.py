# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""One open connection to one node, by which its records come; if it breaks it is opened again, and nothing is lost."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from . import node_side

AGAIN_SECONDS = 1.0
CLOSE_SECONDS = 5.0
# A node says every second that it is there; a connection takes a while to be made.
QUIET_SECONDS = 8.0
CHUNK = 1 << 16
# The other end reads 1 MiB at once, and JSON may write a byte as six.
LONGEST_MESSAGE = 8 << 20
TOLD_BYTES, TOLD_CHUNKS = 500, 64


def _new_mark() -> bytes:
    """What no shell says by chance."""
    return uuid.uuid4().hex.encode()


@dataclass(eq=False)
class Link:
    """``reach`` is the command that runs what is appended to it on the node, such as ssh with its options.

    Where a watch goes on that an earlier process began, ``late`` gets the lines that were there before this one looked.
    What a shell says at login, or anybody else on the way, is no message: ``noise`` counts it.
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
    _began: float = 0.0
    _rest: bytes = b""
    _told: bytes = b""
    _not_before: float = 0.0
    _mark: bytes = field(default_factory=_new_mark)
    _breaks_at_resumption: int = 0

    def open(self) -> int | None:
        """Connect if that is due; the file descriptor to wait for, None where there is none yet."""
        if self._process is None and time.monotonic() >= self._not_before:
            self._connect()
        self._hear()
        return self._stream

    def _connect(self) -> None:
        self._began = self._began or time.monotonic()
        told = (self.folder, json.dumps(self.offsets), self._mark.decode())
        program = ["python3", "-u", "-c", inspect.getsource(node_side), *told]
        self._process = subprocess.Popen(  # noqa: S603 - the inventory names the command
            [*self.reach, " ".join(shlex.quote(word) for word in program)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        if self._process.stderr:
            os.set_blocking(self._process.stderr.fileno(), False)
        self._rest = self._told = b""

    def read(self) -> list[str]:
        """The lines of records that came; at the end of the stream the link is closed, to be opened again."""
        data = os.read(self._stream, CHUNK) if self._stream is not None else b""
        if not data:
            self._broke()
            return []
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_MESSAGE:
            self._note(self._rest)
            self._rest = b""
        return [line for one in whole for line in self._after_mark(one)]

    def trouble(self, now: float) -> str:
        """Why nothing is known of the node; empty where it said a moment ago that it is there."""
        quiet = now - max(self.heard, self._began)
        return f"{self.said or 'no answer'} (for {quiet:.0f} s)" if self._began and quiet > QUIET_SECONDS else ""

    def close(self) -> None:
        """End the connection, and what runs at its other end with it."""
        process = self._process
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLOSE_SECONDS)
                break
        self._hear()
        # Not to their end: a program that the connection left behind may hold them open for ever.
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        self.said = _said(self._told) or self.said
        self._process = None

    def resume(self) -> None:
        """Connect again; lines that are there by then become ``late``: nothing read them when they were written."""
        self.close()
        self.breaks += 1
        self.is_resumed, self._breaks_at_resumption = True, self.breaks

    @property
    def _stream(self) -> int | None:
        return self._process.stdout.fileno() if self._process and self._process.stdout else None

    def _hear(self) -> None:
        """Take what the connection says about itself: where nobody takes it, the connection stands still one day."""
        stream = self._process.stderr if self._process else None
        with contextlib.suppress(BlockingIOError):
            # Not to its end, which a program that never stops does not reach.
            for _chunk in range(TOLD_CHUNKS):
                data = os.read(stream.fileno(), CHUNK) if stream else b""
                if not data:
                    return
                self._told = (self._told + data)[-TOLD_BYTES:]

    def _after_mark(self, line: bytes) -> list[str]:
        """The lines in the message that follows the mark; what stands before it somebody else said."""
        before, mark, message = line.rpartition(self._mark)
        if before or not mark:
            self._note(before or message)
        if not mark:
            return []
        self.heard = time.monotonic()
        return self._taken(message)

    def _note(self, noise: bytes) -> None:
        self.noise += 1
        self.said = _said(noise)

    def _taken(self, told: bytes) -> list[str]:
        """The lines in a message; what a shell says at login and other noise is kept as said, and skipped."""
        message = _message(told)
        if message is None or "error" in message:
            if message is None:
                self._note(told)
            else:
                self.said = f"{message.get('file')}: {message['error']}"
            return []
        if not message:
            return []
        self.offsets[message["file"]] = message["offset"]
        lines: list[str] = message["lines"]
        if self.is_resumed and message.get("old") and self.breaks == self._breaks_at_resumption:
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
    return told.decode(errors="replace").strip()[-TOLD_BYTES:]
