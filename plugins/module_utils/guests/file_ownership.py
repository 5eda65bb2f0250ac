# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Whether somebody else can change what a user puts into a folder: root must not run what others may write."""

from __future__ import annotations

import os
import stat
from typing import Iterator

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def exposed(folder: str) -> str:
    """In words which folder somebody else could change; empty where nobody but this user and root can.

    The folder itself, where it exists, must be the user's. For root also every folder above counts, because whoever may
    rename there puts another folder in its place.
    """
    own, is_root = os.path.realpath(folder), os.geteuid() == 0
    for path in [own, *(_above(own) if is_root else ())]:
        try:
            found = os.stat(path)
        except FileNotFoundError:
            continue
        if found.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user (uid {found.st_uid})"
        # In a folder with the sticky bit nobody renames or removes what belongs to somebody else.
        is_sticky = path != own and found.st_mode & stat.S_ISVTX
        if found.st_mode & (OTHERS_WRITE if is_root else stat.S_IWOTH) and not is_sticky:
            return f"other users may write in {path}"
    return ""


def _above(path: str) -> Iterator[str]:
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        yield path
