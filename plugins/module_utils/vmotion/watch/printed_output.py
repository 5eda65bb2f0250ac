# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The output of a job in a file of the controller, while the job runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from .link import Link

# The size at which a new file starts, because a job may print for days; the former file stays next to it.
MOST_BYTES = 256 << 20
FORMER = ".1"


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
