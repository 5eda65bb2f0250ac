# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Files that others may have replaced: a FIFO would block its reader, and a device would not end."""

from __future__ import annotations

import errno
import os
import stat


def opened(path: str, flags: int = 0) -> int:
    """Return the handle of a regular file for reading; ``flags`` may refuse a link (``O_NOFOLLOW``)."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    raise OSError(errno.EINVAL, "it is not a regular file", path)


def content(path: str, most: int, flags: int = 0) -> bytes:
    """Return the content of a regular file; a larger one is an error."""
    with open(opened(path, flags), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", path)
    return data
