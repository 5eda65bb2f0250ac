"""Find the file systems without room to which a program may have written: its error often names none."""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import errno
import os
import tempfile
from typing import Any

# A file system with less room than this is full.
LEAST_ROOM = 1 << 20


def full_file_systems(error: Any) -> "list[str]":
    """Return the file systems without room to which the program may have written, each with its size."""
    named = getattr(error, "filename", None)
    folders = [os.path.dirname(os.path.abspath(named))] if isinstance(named, str) else []
    usual = _full_of([*folders, os.getcwd(), tempfile.gettempdir(), "/dev/shm"])  # noqa: S108 # only looked at
    # The error of a write names no file.
    return usual or (_full_of(_mounts()) if is_about_room(error) else [])


def is_about_room(error: Any) -> bool:
    """Return whether an error says that a disk is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def _full_of(folders: "list[str]") -> "list[str]":
    """Return the full file systems of folders, each with its size; a read-only one does not count."""
    found = {}
    for folder in folders:
        try:
            space = os.statvfs(folder)
        except OSError:
            continue
        is_full = space.f_bavail * space.f_frsize < min(LEAST_ROOM, space.f_blocks * space.f_frsize)
        if is_full and not space.f_flag & os.ST_RDONLY:
            found.setdefault(_mount_point(folder), f"{space.f_blocks * space.f_frsize / 1e6:.0f} MB")
    return [f"{path} ({size})" for path, size in found.items()]


def _mounts() -> "list[str]":
    """Return the folders on which file systems are mounted."""
    try:
        with open("/proc/self/mounts") as mounts:
            return [line.split()[1] for line in mounts]
    except OSError:
        return []


def _mount_point(folder: str) -> str:
    path = os.path.realpath(folder)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    return path
