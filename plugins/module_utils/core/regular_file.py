"""Files that others may have replaced: a FIFO would block its reader, and a device would not end."""

from __future__ import annotations

import errno
import os
import stat


def opened(path: str, flags: int = 0, folder: int | None = None) -> int:
    """Return the handle of a regular file for reading; ``flags`` may refuse a link (``O_NOFOLLOW``)."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=folder)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    raise OSError(errno.EINVAL, "it is not a regular file", path)


def content(path: str, most: int, flags: int = 0, folder: int | None = None) -> bytes:
    """Return the content of a regular file; a larger one is an error."""
    with open(opened(path, flags, folder), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", path)
    return data


def content_below(folder: str, path: str, most: int) -> bytes:
    """Return the content of a regular file of a folder; a link on the way, also one within the folder, is an error."""
    parts = os.path.normpath(path).split(os.sep)
    if os.path.isabs(path) or os.pardir in parts:
        raise OSError(errno.EINVAL, "it is not in the folder", path)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        return content(parts[-1], most, os.O_NOFOLLOW, handle)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise OSError(errno.ELOOP, "it or a folder above it is a link, which is not followed", path) from error
        raise
    finally:
        os.close(handle)


def link_in(path: str) -> str:
    """Return the first link in a path that its user or another user made; empty without one.

    Links next to the root, such as /home, and those that root made for other users are parts of the system.
    """
    parts = os.path.abspath(path).split(os.sep)
    for end in range(3, len(parts) + 1):
        above = os.sep.join(parts[:end])
        if os.path.islink(above) and (os.geteuid() == 0 or os.lstat(above).st_uid != 0):
            return above
    return ""
