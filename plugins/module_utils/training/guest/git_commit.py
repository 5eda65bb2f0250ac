# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The commit of a folder, read from the files of git.

The program git would run commands that ``.git/config`` of the folder names, such as ``core.fsmonitor`` and filters, as
the user of the controller. Whether files differ from the commit is therefore unknown; a checksum identifies the files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from ...core import regular_file

HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REF = re.compile(r"ref: *(refs/[^\x00-\x20\x7f~^:?*\[\\]+)")
# The file .git of a worktree or of a submodule.
ELSEWHERE = re.compile(r"gitdir: *([^\x00\n]+)")
MOST_REFS, MOST_FOLDERS = 5, 64
MOST_BYTES, MOST_PACKED_BYTES = 4096, 64 << 20
PACKED, COMMON = "packed-refs", "commondir"


def commit_of(folder: str) -> str:
    """Return the commit of the repository that contains a folder; empty without one, or if it cannot be read."""
    try:
        git = _repository(os.path.abspath(folder))
        return _commit(git, _common(git)) if git else ""
    except (OSError, ValueError):
        return ""


def _repository(folder: str) -> str:
    """Return the folder with HEAD for the nearest repository; empty without one."""
    for _level in range(MOST_FOLDERS):
        path = os.path.join(folder, ".git")
        if os.path.lexists(path):
            return _git_folder(path)
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            break
    return ""


def _git_folder(path: str) -> str:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        return path
    named = ELSEWHERE.fullmatch(_text(path))
    return os.path.join(os.path.dirname(path), named[1]) if named else ""


def _common(git: str) -> str:
    """Return the folder with the refs: a worktree has only its own HEAD."""
    path = os.path.join(git, COMMON)
    return os.path.join(git, _text(path)) if os.path.lexists(path) else git


def _commit(git: str, common: str) -> str:
    text = _text(os.path.join(git, "HEAD"))
    for _turn in range(MOST_REFS):
        if HASH.fullmatch(text):
            return text
        named = REF.fullmatch(text)
        if not named or ".." in named[1]:
            return ""
        text = _loose(git, named[1]) or _loose(common, named[1]) or _packed(common, named[1])
    return ""


def _loose(folder: str, ref: str) -> str:
    path = os.path.join(folder, ref)
    # No folder on the way is a link.
    if os.path.realpath(path) != os.path.join(os.path.realpath(folder), ref):
        return ""
    try:
        return _text(path)
    except OSError:
        return ""


def _packed(folder: str, ref: str) -> str:
    for line in _lines(os.path.join(folder, PACKED)):
        commit, _space, name = line.partition(b" ")
        if name.rstrip(b"\n") == os.fsencode(ref):
            return commit.decode("ascii", "replace")
    return ""


def _text(path: str) -> str:
    """Return the content of a small regular file without the last line break."""
    with open(regular_file.opened(path, os.O_NOFOLLOW), "rb") as file:
        return os.fsdecode(file.read(MOST_BYTES)).rstrip("\n")


def _lines(path: str) -> Iterator[bytes]:
    with open(regular_file.opened(path, os.O_NOFOLLOW), "rb") as file:
        left = MOST_PACKED_BYTES
        while left > 0 and (line := file.readline(MOST_BYTES)):
            left -= len(line)
            yield line
