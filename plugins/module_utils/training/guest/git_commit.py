"""The commit of a folder, and the files that differ from it.

Most commands of git run programs that ``.git/config`` of the folder names, such as ``core.fsmonitor`` and filters, as
the user of the controller. The commit is therefore read from files, and only ``git ls-tree`` runs, which reads objects:
it may contact no remote. The content of files is compared as it is, so those that a filter changes always differ.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator

from ...core import regular_file
from ...core.child_environment import without_account

HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REF = re.compile(r"ref: *(refs/[^\x00-\x20\x7f~^:?*\[\\]+)")
# The file .git of a worktree or of a submodule.
ELSEWHERE = re.compile(r"gitdir: *([^\x00\n]+)")
MOST_REFS, MOST_FOLDERS = 5, 64
MOST_BYTES, MOST_PACKED_BYTES = 4096, 64 << 20
PACKED, COMMON = "packed-refs", "commondir"
TREE = ("git", "--no-pager", "-c", "core.fsmonitor=false", "ls-tree", "-r", "-z")
# Objects that are not here would be fetched by a program that the repository names.
ALONE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
TREE_SECONDS, LINK = 60, b"120000"


def commit_of(folder: str) -> str:
    """Return the commit of the repository that contains a folder; empty without one, or if it cannot be read."""
    try:
        git = _repository(os.path.abspath(folder))
        return _commit(git, _common(git)) if git else ""
    except (OSError, ValueError):
        return ""


def changes_of(folder: str, commit: str, paths: Iterable[str]) -> dict[str, object]:
    """Return how many of the paths, and of the missing ones, differ from a commit, and the checksum of the differences.

    The result is empty if git cannot read the commit. A file that the commit lacks does not count.
    """
    try:
        words = [*TREE, commit]
        environment = {**without_account(os.environ), **ALONE}
        # pylint: disable-next=ansible-bad-function # outside Ansible, on the controller
        listed = subprocess.run(  # noqa: S603 # git of the user
            words, cwd=folder, env=environment, capture_output=True, check=True, timeout=TREE_SECONDS
        ).stdout
        tree = [entry.partition(b"\t") for entry in listed.split(b"\0") if entry]
        shipped = {os.fsencode(path) for path in paths}
        changed = hashlib.sha256()
        count = 0
        for about, _tab, path in tree:
            mode, kind, known = about.split()
            now = _object(folder, path, mode, len(known)) if path in shipped else _missing(folder, path)
            if kind == b"blob" and now is not None and now != known:
                count += 1
                changed.update(path + b"\0" + now + b"\n")
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {"changed": count, "changes_sha256": changed.hexdigest()} if count else {"changed": 0}


def _missing(folder: str, path: bytes) -> bytes | None:
    return None if os.path.lexists(os.path.join(os.fsencode(folder), path)) else b""


def _object(folder: str, path: bytes, mode: bytes, digits: int) -> bytes:
    """Return the name that git gives to the content of a file or of a link; a kind of file that changed has none."""
    place = os.path.join(os.fsencode(folder), path)
    if (mode == LINK) != os.path.islink(place):
        return b"-"
    if mode == LINK:
        data = os.readlink(place)
    else:
        with open(regular_file.opened(os.fsdecode(place), os.O_NOFOLLOW), "rb") as file:
            data = file.read()
    # Git names objects so; it protects nothing.
    made = hashlib.new("sha1" if digits == len(hashlib.sha1(b"").hexdigest()) else "sha256")  # noqa: S324
    made.update(b"blob %d\0" % len(data) + data)
    return made.hexdigest().encode()


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
