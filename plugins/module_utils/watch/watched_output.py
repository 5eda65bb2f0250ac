"""The output of a running job: written to a file of the controller, and shown line by line with its ranks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from .link import Link
from .mpi_output import lines_of
from .shown_lines import line_of

# The size at which a new file starts, because a job may print for days; the former file stays next to it.
MOST_BYTES = 256 << 20
FORMER = ".1"
# A screen shows no more lines at once; the file has all of them.
MOST_LINES = 100
READ_BYTES = 4 << 20


class PrintedOutput:
    """Writes the output that the first node with an output sends; nodes that share a folder all send it."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._has_written = path, False
        self._link: Link | None = None

    def take(self, links: Sequence[Link]) -> None:
        """Append the output that arrived; a full disk must not end the watch."""
        for link in links:
            printed, link.printed = "".join(link.printed), []
            if not printed or self._path is None:
                continue
            self._link = self._link or link
            if link is self._link:
                with contextlib.suppress(OSError):
                    self._append(self._path, printed)

    def _append(self, path: Path, text: str) -> None:
        """Append a text; the output of an earlier watch is replaced, because the watch reads all of it again."""
        if self._has_written and path.exists() and path.stat().st_size > MOST_BYTES:
            path.replace(path.with_name(path.name + FORMER))
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if self._has_written else os.O_TRUNC)
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        self._has_written = True


class ShownOutput:
    """The lines of a file to which a watch appends; without ``show``, none is shown."""

    def __init__(self, path: Path, show: Callable[[str, str], None] | None) -> None:
        self._path, self._show = path, show
        self._position, self._rest = 0, b""

    def show(self) -> None:
        """Show the lines that are new since the last call."""
        if self._show is None:
            return
        *complete, self._rest = (self._rest + self._new()).split(b"\n")
        lines = lines_of(b"\n".join(complete).decode("utf-8", "replace"))
        for line in lines[:MOST_LINES]:
            self._show("", line_of(line))
        if len(lines) > MOST_LINES:
            self._show("", f"and {len(lines) - MOST_LINES} more lines, which are in {self._path}")

    def _new(self) -> bytes:
        """Return the appended bytes; a new file is read from its beginning."""
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, 2)
                self._position = file.seek(self._position if size >= self._position else 0)
                data = file.read(READ_BYTES)
        except OSError:
            return b""
        self._position += len(data)
        return data
