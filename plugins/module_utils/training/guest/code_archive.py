"""Compute the checksum of a folder's archive on a node, compare the archive with a folder, and unpack it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tarfile
import uuid
from collections.abc import Iterable
from typing import Any

BLOCK = 1 << 20


def checksum(path: str) -> str | None:
    """Return the checksum of a file; None if there is no such file."""
    sha256 = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                sha256.update(block)
    except OSError:
        return None
    return sha256.hexdigest()


def differing(path: str, folder: str) -> list[str]:
    """Return the members of an archive that a folder lacks or has with other content or permissions."""
    with tarfile.open(path) as archive:
        return [member.name for member in archive if not _is_same(archive, member, os.path.join(folder, member.name))]


def _is_same(archive: tarfile.TarFile, member: tarfile.TarInfo, there: str) -> bool:
    try:
        if member.issym():
            return os.readlink(there) == member.linkname
        if member.isdir():
            return os.path.isdir(there)
        with open(there, "rb") as file:
            content: Any = archive.extractfile(member)
            has_mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) == member.mode
            return has_mode and not os.path.islink(there) and bool(file.read() == content.read())
    except OSError:
        return False


def unpack(path: str, folder: str, names: Iterable[str] | None = None) -> None:
    """Unpack an archive, or some of its members; each file atomically replaces the file with its name."""
    desired = None if names is None else set(names)
    with tarfile.open(path) as archive:
        for member in archive:
            if desired is None or member.name in desired:
                _unpack_one(archive, member, folder)


def _unpack_one(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    is_known = member.isfile() or member.issym() or member.isdir()
    if os.path.isabs(member.name) or ".." in member.name.split("/") or not is_known:
        raise OSError(0, "the archive contains a member that is not a file in the folder", member.name)
    target = os.path.join(folder, member.name)
    os.makedirs(target if member.isdir() else os.path.dirname(target), mode=0o755, exist_ok=True)
    if member.isdir():
        return
    temporary = os.path.join(os.path.dirname(target), f".dml-{uuid.uuid4().hex}")
    try:
        if member.issym():
            os.symlink(member.linkname, temporary)
        else:
            content: Any = archive.extractfile(member)
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, member.mode), "wb") as file:
                shutil.copyfileobj(content, file)
                os.fchmod(file.fileno(), member.mode)
            if member.mtime:
                # The last write, when the file is closed, would change the time.
                os.utime(temporary, (member.mtime, member.mtime))
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
