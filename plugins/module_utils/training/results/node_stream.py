"""The output of a command on a node, read in constant memory, with a deadline for a node that sends nothing."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # the output of a node is read while it arrives
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Any

from ...core.child_environment import without_account
from ...core.names import printable

BLOCK = 1 << 20
# A node may be silent during vMotion. A connection that works sends more than LEAST_BYTES in this time.
SILENCE_SECONDS = 300.0
LEAST_BYTES = 1 << 16
END_SECONDS = 60.0
MOST_ERRORS = 2000


class StreamError(Exception):
    """The reason why the output of a node is not used."""


class EndedEarly(StreamError):
    """The output ended before the end of its content; the errors of the command may contain the cause."""


class NodeStream:
    """The output of one command; leaving the block ends the command."""

    def __init__(self, command: Sequence[str], given: Any = subprocess.DEVNULL) -> None:
        self._command, self._given = list(command), given
        self._errors = b""
        self._waited, self._arrived = 0.0, 0

    def __enter__(self) -> NodeStream:
        self._process = subprocess.Popen(  # noqa: S603 # the connection of the inventory
            self._command,
            stdin=self._given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=without_account(os.environ),
            start_new_session=True,
        )
        self._selector = selectors.DefaultSelector()
        # The pipes of stdout and stderr always exist, but the type of Popen does not say so.
        for stream in (self._process.stdout, self._process.stderr):
            self._selector.register(stream, selectors.EVENT_READ)  # type: ignore[arg-type]
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        # The pipes of stdout and stderr always exist, but the type of Popen does not say so.
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    @property
    def errors(self) -> str:
        """Return the end of the error output of the command as one line of printable text."""
        return printable(" ".join(self._errors.decode("utf-8", "replace").split()))

    def some(self, most: int = BLOCK) -> bytes:
        """Return the next bytes; empty at the end of the output."""
        output: Any = self._process.stdout
        began, before = time.monotonic(), self._waited
        while self._waited < SILENCE_SECONDS:
            ready = self._ready(SILENCE_SECONDS - self._waited)
            self._waited = before + time.monotonic() - began
            if output in ready:
                data = os.read(output.fileno(), min(most, BLOCK))
                self._count(len(data))
                return data
        raise StreamError(f"the node sent {self._arrived} bytes in {SILENCE_SECONDS:g} s")

    def exactly(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count:
            data = self.some(count)
            if not data:
                raise EndedEarly("the output of the node ended early")
            parts.append(data)
            count -= len(data)
        return b"".join(parts)

    def ended(self) -> int:
        """Return the exit code of the command after the end of its output."""
        deadline = time.monotonic() + END_SECONDS
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise StreamError(f"the command on the node did not end within {END_SECONDS:g} s of its output")
            self._ready(0.05)
        self._ready(0)
        return int(self._process.returncode)

    def _count(self, count: int) -> None:
        self._arrived += count
        if self._arrived >= LEAST_BYTES:
            self._waited, self._arrived = 0.0, 0

    def _ready(self, seconds: float) -> list[IO[bytes]]:
        """Wait for output, keep the end of the error output, and return the streams that have output or an end."""
        ready: list[Any] = [key.fileobj for key, _events in self._selector.select(seconds)]
        if self._process.stderr in ready:
            data = os.read(self._process.stderr.fileno(), BLOCK)  # type: ignore[union-attr]
            self._errors = (self._errors + data)[-MOST_ERRORS:]
            if not data:
                self._selector.unregister(self._process.stderr)  # type: ignore[arg-type]
        return ready
