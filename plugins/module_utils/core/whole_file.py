"""Files that are written completely or not at all: a full disk or a kill leaves the earlier file."""

from __future__ import annotations

import contextlib
import os
import tempfile


def write(path: str, content: bytes, mode: int = 0o600, *, replaces: bool = True) -> None:
    """Write a temporary file next to ``path``, then rename it; without ``replaces``, an existing file is an error."""
    folder, name = os.path.split(path)
    handle, beside = tempfile.mkstemp(dir=folder or ".", prefix=f".{name}-")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(handle, mode)
        if replaces:
            os.replace(beside, path)
        else:
            os.link(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
