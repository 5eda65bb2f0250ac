"""One open connection to a node that sends its records; a broken connection is reopened, and no record is lost."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # the program on each node keeps running
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

from ..core import observer_clock
from ..core.child_environment import without_account
from . import records_program

REOPEN_SECONDS = 1.0
CLOSE_SECONDS = 5.0
# A node sends a sign of life every second; opening a connection takes a while.
QUIET_SECONDS = 8.0
CHUNK = 1 << 16
# The other end reads 1 MiB at once, and JSON may write a byte as six.
LONGEST_MESSAGE = 8 << 20
# A node can name any number of files, and the next connection sends their names in one argument of a command.
MOST_OF_NAMES, LARGEST = 100_000, 1 << 63
ERROR_BYTES, ERROR_CHUNKS = 500, 64


def _new_mark() -> bytes:
    """Return a random mark, which no shell prints by chance."""
    return uuid.uuid4().hex.encode()


@dataclass(eq=False)
class Link:
    """A connection to a node. ``reach`` is the command that runs a command on the node, such as ssh with its options.

    If the watch continues that of an earlier process, ``late`` gets the lines that are older than this connection.
    ``tail`` are the bytes at the end of each file with which the first connection begins; 0 for all of it.
    With ``has_view``, the node also sends the use of its GPUs and the end of the job: ``view`` has the latest of each,
    with the time of its arrival. ``printed`` gets the output of the job.
    ``noise`` counts the output that is not a message, such as a shell's greeting at login.
    """

    name: str
    reach: Sequence[str]
    folder: str
    offsets: dict[str, int] = field(default_factory=dict)
    last_message_at: float = 0.0
    breaks: int = 0
    last_error: str = ""
    noise: int = 0
    is_resumed: bool = False
    tail: int = 0
    has_view: bool = False
    view: dict[str, tuple[float, Any]] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _began: float = 0.0
    _rest: bytes = b""
    _errors: bytes = b""
    _not_before: float = 0.0
    _mark: bytes = field(default_factory=_new_mark)
    # The files of which all was read that existed when the watch was resumed, and whether that is so for all of them.
    _caught_up: set[str] = field(default_factory=set)
    _has_caught_up: bool = False

    def open(self) -> None:
        if self._process is None and time.monotonic() >= self._not_before:
            self._connect()
        self._read_errors()

    @property
    def stream(self) -> int | None:
        """Return the file descriptor to wait for, or None before there is one."""
        return self._process.stdout.fileno() if self._process and self._process.stdout else None

    def _connect(self) -> None:
        self._began = self._began or time.monotonic()
        arguments = (self.folder, json.dumps(self.offsets), self._mark.decode(), str(self.tail))
        view = ["view"] if self.has_view else []
        program = ["python3", "-u", "-c", inspect.getsource(records_program), *arguments, *view]
        self._process = subprocess.Popen(  # noqa: S603 - the inventory names the command
            [*self.reach, " ".join(shlex.quote(word) for word in program)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=without_account(os.environ),
            start_new_session=True,
        )
        if self._process.stderr:
            os.set_blocking(self._process.stderr.fileno(), False)
        self._rest = self._errors = b""

    def read(self) -> list[str]:
        """Return the lines of records that arrived; at the end of the stream, close the link so that it is reopened."""
        data = os.read(self.stream, CHUNK) if self.stream is not None else b""
        if not data:
            self._close_broken()
            return []
        *complete, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_MESSAGE:
            self._count_noise(self._rest)
            self._rest = b""
        return [line for output in complete for line in self._after_mark(output)]

    def trouble(self, now: float) -> str:
        """Return why the node cannot be read; empty if it sent a sign of life a moment ago."""
        quiet = now - max(self.last_message_at, self._began)
        is_quiet = self._began and quiet > QUIET_SECONDS
        return f"{self.last_error or 'no answer'} (for {quiet:.0f} s)" if is_quiet else ""

    def close(self) -> None:
        """End the connection and the program at its other end."""
        process = self._process
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLOSE_SECONDS)
                break
        self._read_errors()
        # The streams are not read to their end: a program that the connection left behind may hold them open.
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        self.last_error = _text(self._errors) or self.last_error
        self._process = None

    def go_on_from(self, offsets: object) -> None:
        """Begin each file where an earlier watch ended: the last bytes of a file lack the records in between."""
        given = offsets.items() if isinstance(offsets, dict) else ()
        self.offsets.update({str(name): offset for name, offset in given if _is_offset(offset)})

    def resume(self) -> None:
        """Connect again. Lines that exist by then become ``late``, because they were not read when written."""
        self.close()
        self.breaks += 1
        self.is_resumed, self._caught_up, self._has_caught_up = True, set(), False

    def _read_errors(self) -> None:
        """Read the error output of the connection, which blocks once its buffer is full."""
        stream = self._process.stderr if self._process else None
        with contextlib.suppress(BlockingIOError):
            # The number of chunks is limited, because a program may print forever.
            for _chunk in range(ERROR_CHUNKS):
                data = os.read(stream.fileno(), CHUNK) if stream else b""
                if not data:
                    return
                self._errors = (self._errors + data)[-ERROR_BYTES:]

    def _after_mark(self, output: bytes) -> list[str]:
        """Return the lines in the message that follows the mark; output before the mark is noise."""
        before, mark, message = output.rpartition(self._mark)
        if before or not mark:
            self._count_noise(before or message)
        if not mark:
            return []
        self.last_message_at = time.monotonic()
        return self._lines_in(message)

    def _count_noise(self, noise: bytes) -> None:
        self.noise += 1
        self.last_error = _text(noise)

    def _lines_in(self, output: bytes) -> list[str]:
        """Return the lines in a message; other output is noise."""
        message = _message(output)
        if message is None or "error" in message:
            if message is None:
                self._count_noise(output)
            else:
                self.last_error = f"{message.get('file')}: {message['error']}"
            return []
        if "output" in message:
            self.offsets[records_program.OUTPUT] = message["offset"]
            left_out = f"({message['skipped']} bytes were left out here)\n" if message["skipped"] else ""
            self.printed.append(left_out + message["output"])
            return []
        # The node sends a sign of life only after all lines that it had before.
        self._has_caught_up = self._has_caught_up or not message
        if not _has_lines(message):
            self.view.update({key: (observer_clock.now(), content) for key, content in message.items()})
            return []
        offsets = {**self.offsets, message["file"]: message["offset"]}
        if message["file"] not in self.offsets and len(json.dumps(offsets)) > MOST_OF_NAMES:
            self._count_noise(output)
            return []
        self.offsets[message["file"]] = message["offset"]
        lines: list[str] = message["lines"]
        if self._are_late(message["file"], is_old=bool(message.get("old"))):
            self.late += lines
            return []
        return lines

    def _are_late(self, file: str, *, is_old: bool) -> bool:
        """Return whether no watch read these lines of a file when they were written."""
        if not is_old:
            self._caught_up.add(file)
        return is_old and self.is_resumed and not self._has_caught_up and file not in self._caught_up

    def _close_broken(self) -> None:
        self.breaks += 1
        self._not_before = time.monotonic() + REOPEN_SECONDS
        self.close()


def _message(output: bytes) -> dict[str, Any] | None:
    """Return the message of the program on the node, even after text without a line end; None for other output."""
    for begin in (0, max(0, output.find(b"{"))):
        try:
            message = json.loads(output[begin:])
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and ("error" in message or _has_lines(message) or _is_view(message)):
            return message
    return None


def _is_view(message: dict[str, Any]) -> bool:
    """Return whether a message is a part of the view of the node; a sign of life is an empty one."""
    if isinstance(message.get("gpus"), dict):
        return len(message) == 1 and isinstance(message["gpus"].get("text"), str)
    if "output" in message:
        numbers = [message.get(key) for key in ("offset", "skipped")]
        # pylint: disable-next=unidiomatic-typecheck # True is not a valid number of bytes
        are_valid = all(type(number) is int and number >= 0 for number in numbers)
        return are_valid and isinstance(message["output"], str) and len(message) == len(numbers) + 1
    return not message or message == {"end": True}


def _has_lines(message: dict[str, object]) -> bool:
    name, offset, lines = (message.get(key) for key in ("file", "offset", "lines"))
    is_named = isinstance(name, str) and _is_offset(offset)
    return is_named and isinstance(lines, list) and all(isinstance(line, str) for line in lines)


def _is_offset(value: object) -> bool:
    # pylint: disable-next=unidiomatic-typecheck # True is not a valid number of bytes
    return type(value) is int and 0 <= value < LARGEST


def _text(output: bytes) -> str:
    return output.decode(errors="replace").strip()[-ERROR_BYTES:]
