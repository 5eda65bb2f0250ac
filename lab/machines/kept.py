# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is built once for all labs: held by who uses it, and removed when another recipe takes its place."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

CAPABILITIES = ".capabilities"  # what an engine has found out of this machine, beside it


def hold(path: Path) -> int:
    """Keep it from being removed as long as this process lives; the descriptor that does it."""
    held = os.open(path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def remove_others(path: Path, pattern: str) -> list[Path]:
    """Remove what lies beside it by such a name and is held by nobody; nobody may build meanwhile."""
    others = [one for one in path.parent.glob(pattern) if one != path and one.suffix == path.suffix]
    return [one for one in others if _remove(one)]


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
