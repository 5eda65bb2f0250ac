"""Detection of folders that other users can change: root must not run files that other users may write."""

from __future__ import annotations

import os
import stat
from typing import Iterator

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def exposed(folder: str) -> str:
    """Return why another user could change a folder; empty if only this user and root can change it.

    The folder, if it exists, must belong to the user. For root, all parent folders are checked too, because a user who
    may rename entries there can replace the folder.
    """
    own, is_root = os.path.realpath(folder), os.geteuid() == 0
    for path in [own, *(_above(own) if is_root else ())]:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        if status.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user (uid {status.st_uid})"
        # In a folder with the sticky bit, users cannot rename or remove entries of other users.
        is_sticky = path != own and status.st_mode & stat.S_ISVTX
        if status.st_mode & (OTHERS_WRITE if is_root else stat.S_IWOTH) and not is_sticky:
            return f"other users may write in {path}"
    return ""


def _above(path: str) -> Iterator[str]:
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        yield path
