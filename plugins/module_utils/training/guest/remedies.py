"""Remedies for the end of a job if its cause is visible in the copied folder or on the launcher's disk."""

from __future__ import annotations

import os
import re
import socket

_NO_MODULE = re.compile(r"No module named '([A-Za-z_]\w*)")
WORK, DEEPEST = "work", 2


def of(sentence: str, run_dir: str) -> str:
    """Return the remedy for the cause of a job's end, as the rest of a sentence; empty if unknown."""
    work, missing = os.path.join(run_dir, WORK), _NO_MODULE.search(sentence)
    if not missing or not os.path.isdir(work):
        return ""
    name = missing[1]
    folder = _folder_with(work, name)
    if folder:
        path = os.path.relpath(folder, work)
        return (
            f"; your folder has {path}/{name}: set PYTHONPATH={path} in training_environment, or install it with the "
            "line . in requirements.txt"
        )
    return f"; add the package that has the module {name} to requirements.txt in your folder"


def no_space(run_dir: str) -> str:
    """Return the full file system that contains a run directory, and its size."""
    space, path = os.statvfs(run_dir), os.path.realpath(run_dir)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    size = space.f_blocks * space.f_frsize / 1e6
    return f"; no space left on {socket.gethostname()}:{run_dir}, whose file system {path} has {size:.1f} MB"


def _folder_with(work: str, name: str) -> str:
    """Return the nearest folder below the copied one that contains a module; empty if none is near."""
    for above, folders, files in os.walk(work):
        if above != work and (name in folders or f"{name}.py" in files):
            return above
        if above.count(os.sep) - work.count(os.sep) >= DEEPEST:
            folders.clear()
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
    return ""
