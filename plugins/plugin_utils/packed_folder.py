# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of the controller as an archive: equal files give equal bytes, so its checksum identifies the content."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from ..module_utils.errors import Refused
from ..module_utils.training.folder import FILE, IGNORE_FILE, LINK, NEVER, OTHER, FolderFile, is_ignored, patterns_of
from ..module_utils.training.guest import git_commit


class _Digest:
    """A file that keeps only the checksum of its content."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return len(data)


def files_of(folder: str, exclude: Sequence[str] = ()) -> list[FolderFile]:
    """Return the files of a folder that are not left out, in the order of their paths."""
    if not os.path.isdir(folder):
        remedy = "specify a folder on the controller"
        raise Refused(f"training_folder {folder}", "read the folder", "there is no such folder", remedy)
    patterns = [*NEVER, *exclude, *_own_patterns(folder)]
    try:
        return sorted(_below(folder, "", patterns))
    except OSError as error:
        raise Refused(f"training_folder {folder}", f"read {error.filename}", str(error.strerror)) from error


def _own_patterns(folder: str) -> list[str]:
    try:
        with open(os.path.join(folder, IGNORE_FILE), encoding="utf-8") as file:
            return patterns_of(file.read())
    except FileNotFoundError:
        return []


def _below(folder: str, inner: str, patterns: Sequence[str]) -> Iterator[FolderFile]:
    with os.scandir(os.path.join(folder, inner)) as entries:
        for entry in entries:
            path = f"{inner}/{entry.name}" if inner else entry.name
            if is_ignored(path, patterns):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder, path, patterns)
            else:
                yield _file(entry, path)


def _file(entry: os.DirEntry[str], path: str) -> FolderFile:
    if entry.is_symlink():
        return FolderFile(path, LINK, link=os.readlink(entry.path))
    if not entry.is_file():
        return FolderFile(path, OTHER)
    status = entry.stat()
    return FolderFile(path, FILE, status.st_size, bool(status.st_mode & 0o100))


def commit(folder: str) -> dict[str, str]:
    """Return the commit of the repository that contains a folder; empty without one."""
    commit = git_commit.commit_of(folder)
    return {"commit": commit} if commit else {}


def digest(folder: str, files: Iterable[FolderFile]) -> str:
    """Return the checksum of the archive without writing it."""
    output: Any = _Digest()
    pack(folder, files, output)
    return str(output.sha256.hexdigest())


def pack(folder: str, files: Iterable[FolderFile], output: IO[bytes]) -> None:
    """Write the archive; it does not contain owners, times and other permissions than that to execute."""
    # A stream, because a checksum cannot seek.
    with tarfile.open(fileobj=output, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for file in files:
            member = tarfile.TarInfo(file.path)
            member.mode = 0o755 if file.is_executable else 0o644
            if file.kind == LINK:
                member.type, member.linkname = tarfile.SYMTYPE, file.link
                archive.addfile(member)
                continue
            with open(os.path.join(folder, file.path), "rb") as content:
                member.size = file.size
                archive.addfile(member, content)
