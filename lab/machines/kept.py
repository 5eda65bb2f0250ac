"""Build results for all labs: locked by their users, and removed when a newer recipe replaces them."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

CAPABILITIES = ".capabilities"  # suffix of the folder next to an engine with the detected capabilities of this machine


def hold(path: Path) -> int:
    """Lock a path against removal for the lifetime of this process, and return the file descriptor of the lock."""
    held = os.open(path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def remove_others(path: Path, pattern: str) -> list[Path]:
    """Remove the siblings of a path that match a pattern and are not locked; no build may run meanwhile."""
    others = [other for other in path.parent.glob(pattern) if other != path and other.suffix == path.suffix]
    return [other for other in others if _remove(other)]


def _remove(path: Path) -> bool:
    held = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        if path.is_dir():
            shutil.rmtree(path)
            shutil.rmtree(path.with_suffix(CAPABILITIES), ignore_errors=True)
        else:
            path.unlink()
        return True
    finally:
        os.close(held)
