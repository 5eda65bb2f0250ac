# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The output of a running job, shown line by line with the rank that printed each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...training.mpi_output import lines_of
from ...training.shown_lines import line_of

# A screen shows no more lines at once; the file has all of them.
MOST_LINES = 100
READ_BYTES = 4 << 20


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
