"""Events of a long call, one line of JSON each, in a private file that the controller follows and shows."""

from __future__ import annotations

import json
import os
import time

ARGUMENTS = {"progress": {"type": "bool", "default": True}, "progress_file": {"type": "path"}}


class Progress:
    """Appends events to the file; without a file it is silent."""

    def __init__(self, path: str | None) -> None:
        # The controller creates the file for this call only: a link or a new file would belong to another user.
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        self._file = os.open(path, flags) if path else None
        self._began: dict[str, float] = {}

    def report(self, about: str, what: str) -> None:
        """One event of one object, with the seconds since its first one; one write, so that threads do not mix."""
        if self._file is None:
            return
        now = time.monotonic()
        seconds = now - self._began.setdefault(about, now)
        line = json.dumps({"about": about, "what": what, "seconds": round(seconds, 1)})
        os.write(self._file, f"{line}\n".encode())
