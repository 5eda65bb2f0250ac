# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of the controller as an archive: equal files give equal bytes, so its checksum identifies the content."""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from ..module_utils.core import regular_file
from ..module_utils.errors import Failed, Refused
from ..module_utils.training.guest import code_folder, git_commit
from ..module_utils.training.launch import data
from ..module_utils.training.launch.folder import (
    EMPTY,
    FILE,
    IGNORE_FILE,
    LINK,
    NEVER,
    OTHER,
    FolderFile,
    check_secrets,
    is_ignored,
    is_private_name,
    patterns_of,
    secret_in,
)

MOST_IGNORE_BYTES, MOST_REQUIREMENTS_BYTES, MOST_SMALL_BYTES, BLOCK = 1 << 20, 1 << 20, 1 << 20, 1 << 20
# A file with an account in a URL, such as requirements with an index of packages, is small and for its owner only.
MOST_ACCOUNT_BYTES, ACCOUNT, PRIVATE_MODE = 1 << 16, re.compile(rb"https?://[^/\s@]{1,400}@"), 0o700
# The permission of others to write is not kept: users with another umask get the same archive.
KEPT_MODE, LEAST_MODE = 0o755, 0o600


class _Digest:
    """A file that keeps only the checksum of its content."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        return len(data)


def files_of(folder: str, exclude: Sequence[str] = ()) -> list[FolderFile]:
    """Return the files of a folder that are not left out, in the order of their paths; a file has only itself."""
    if os.path.isfile(folder):
        status = os.stat(folder)
        return [FolderFile(os.path.basename(folder), FILE, status.st_size, status.st_mode & KEPT_MODE | LEAST_MODE)]
    if not os.path.isdir(folder):
        remedy = "specify a folder on the controller"
        raise Refused(f"training_folder {folder}", "read the folder", "there is no such folder", remedy)
    patterns = [*NEVER, *exclude, *_own_patterns(folder)]
    try:
        return sorted(_below(folder, os.path.realpath(folder), "", patterns))
    except OSError as error:
        raise _unreadable(folder, error) from error


def secrets_of(folder: str, files: Iterable[FolderFile], include: Sequence[str]) -> dict[str, str]:
    """Return the files that look like keys or passwords and that are not included explicitly, with the reason."""
    found = {}
    for file in files:
        if file.kind != FILE or is_ignored(file.path, include):
            continue
        try:
            if why := "its name" if is_private_name(file.path) else secret_in(_blocks(folder, file)):
                found[file.path] = why
        except OSError as error:
            raise _unreadable(folder, error) from error
    return found


def requirements_of(folder: str, path: str, include: Sequence[str]) -> str:
    """Return the text of the requirements in a folder, which are sent even if the folder leaves the file out."""
    try:
        text = regular_file.content_below(folder, path, MOST_REQUIREMENTS_BYTES)
        why = "" if is_ignored(path, include) else "its name" if is_private_name(path) else secret_in([text])
        check_secrets(folder, {path: why} if why else {})
        return text.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        remedy = "correct training_requirements"
        raise Refused(os.path.join(folder, path), "read the requirements", str(cause), remedy) from error


def _unreadable(folder: str, error: OSError) -> Refused:
    return Refused(f"training_folder {folder}", f"read {error.filename}", str(error.strerror))


def _blocks(folder: str, file: FolderFile) -> Iterator[bytes]:
    with open(regular_file.opened(os.path.join(folder, file.path), os.O_NOFOLLOW), "rb") as content:
        left = file.size
        while left > 0 and (block := content.read(min(left, BLOCK))):
            left -= len(block)
            yield block


def _own_patterns(folder: str) -> list[str]:
    path = os.path.join(folder, IGNORE_FILE)
    try:
        return patterns_of(regular_file.content(path, MOST_IGNORE_BYTES).decode("utf-8-sig"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error
    except UnicodeDecodeError as error:
        raise Refused(
            f"training_folder {folder}", f"read {path}", "it is not UTF-8 text", "save it as UTF-8"
        ) from error


def _below(folder: str, real: str, inner: str, patterns: Sequence[str]) -> Iterator[FolderFile]:
    is_empty = bool(inner)
    with os.scandir(os.path.join(folder, inner)) as entries:
        for entry in entries:
            path, is_empty = f"{inner}/{entry.name}" if inner else entry.name, False
            if is_ignored(path, patterns):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _below(folder, real, path, patterns)
            else:
                yield _file(entry, real, path)
    if is_empty:
        # A program may write to it, and need not make it.
        yield FolderFile(inner, EMPTY, mode=KEPT_MODE)


def _file(entry: os.DirEntry[str], real: str, path: str) -> FolderFile:
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        leads_out = os.path.commonpath([real, target]) != real
        return FolderFile(path, LINK, link=os.readlink(entry.path), leads_out=leads_out, loops=_loops(entry.path))
    if not entry.is_file():
        return FolderFile(path, OTHER)
    status = entry.stat()
    mode = status.st_mode & KEPT_MODE | LEAST_MODE
    has_account = status.st_size <= MOST_ACCOUNT_BYTES and ACCOUNT.search(
        regular_file.content(entry.path, MOST_ACCOUNT_BYTES, os.O_NOFOLLOW)
    )
    return FolderFile(path, FILE, status.st_size, mode & PRIVATE_MODE if has_account else mode)


def _loops(link: str) -> bool:
    try:
        os.stat(link)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def commit(folder: str, files: Iterable[FolderFile]) -> dict[str, object]:
    """Return the commit of the repository that contains a folder, and how its files differ; empty without one."""
    commit = git_commit.commit_of(folder)
    paths = (file.path for file in files if file.kind in (FILE, LINK))
    return {"commit": commit, **git_commit.changes_of(folder, commit, paths)} if commit else {}


def digest(folder: str, files: Iterable[FolderFile]) -> str:
    """Return the checksum of the archive without writing it."""
    output: Any = _Digest()
    pack(folder, files, output)
    return str(output.sha256.hexdigest())


def small_archive(folder: str, files: Sequence[FolderFile], kept: str) -> str:
    """Return the archive, or the one kept on the controller, compressed and in Base64; empty if it is large or missing.

    One that arrives with the options of the module saves the node four more connections and a second module.
    """
    if files and sum(file.size for file in files) <= MOST_SMALL_BYTES:
        output = io.BytesIO()
        pack(folder, files, output)
        content = output.getvalue()
    elif not files and os.path.isfile(kept) and os.path.getsize(kept) <= MOST_SMALL_BYTES:
        content = regular_file.content(kept, MOST_SMALL_BYTES)
    else:
        return ""
    return base64.b64encode(zlib.compress(content)).decode("ascii")


def with_times(folder: str, files: Iterable[FolderFile]) -> list[FolderFile]:
    """Return the files with the times of their last changes, which then belong to the archive and its checksum."""
    return [file._replace(modified=int(os.lstat(os.path.join(folder, file.path)).st_mtime)) for file in files]


def pack(folder: str, files: Iterable[FolderFile], output: IO[bytes]) -> None:
    """Write the archive; it contains no owners, and only the times that belong to the content."""
    # A stream, because a checksum cannot seek.
    with tarfile.open(fileobj=output, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for file in files:
            member = tarfile.TarInfo(file.path)
            member.mode, member.mtime = file.mode, file.modified
            if file.kind in (LINK, EMPTY):
                member.type = tarfile.SYMTYPE if file.kind == LINK else tarfile.DIRTYPE
                member.linkname = file.link
                archive.addfile(member)
                continue
            path = folder if os.path.isfile(folder) else os.path.join(folder, file.path)
            with open(regular_file.opened(path, 0 if path == folder else os.O_NOFOLLOW), "rb") as content:
                member.size = file.size
                archive.addfile(member, content)


def data_files(path: str, limit: int) -> list[FolderFile]:
    """Return the files of data; refuse data that cannot be copied."""
    if not os.path.exists(path):
        raise data.refused(path, "there is no such file or folder", "set training_data to a path here, or to a URL")
    if link := regular_file.link_in(path):
        cause = f"{link} is a link, which could lead to a key"
        raise data.refused(path, cause, f"set training_data to {os.path.realpath(path)} if this is the data")
    files = files_of(path)
    data.check(path, files, limit)
    return files


def data_checksum(path: str, limit: int, expected: str = "") -> dict[str, object]:
    """Return the checksum of the archive of data, and the name of the file if the data is one file."""
    found = digest(path, data_files(path, limit))
    if expected and found != expected:
        raise data.other_content(path, expected, found)
    return {"sha256": found, "file": os.path.basename(path) if os.path.isfile(path) else ""}


def code_checksum(folder: str, exclude: Sequence[str]) -> str:
    """Return the checksum of the archive of the program in a folder."""
    return digest(folder, files_of(folder, exclude))


def keep_code(folder: str, exclude: Sequence[str], sha256: str, earlier: str, dest: str) -> bool:
    """Keep the archive with this checksum as ``dest``: the one of an earlier run, or one of the folder.

    Return False if neither has the checksum: another controller has the folder, or its files have changed.
    """
    if code_folder.checksum(dest) == sha256:
        return True
    try:
        os.makedirs(os.path.dirname(dest), mode=0o700, exist_ok=True)
        handle, new = tempfile.mkstemp(prefix=".code-", dir=os.path.dirname(dest))
        try:
            with open(handle, "wb") as archive:
                _write_code(folder, exclude, sha256, earlier, archive)
            is_kept = code_folder.checksum(new) == sha256
            if is_kept:
                os.replace(new, dest)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)
    except OSError as error:
        raise Failed(dest, "keep the program of the run", error.strerror or str(error)) from error
    return is_kept


def _write_code(folder: str, exclude: Sequence[str], sha256: str, earlier: str, archive: IO[bytes]) -> None:
    """Write the archive of an earlier run if it has the checksum, else that of the folder; nothing without either."""
    if code_folder.checksum(earlier) == sha256:
        with open(earlier, "rb") as kept:
            shutil.copyfileobj(kept, archive)
        return
    if not folder:
        return
    with contextlib.suppress(Refused, OSError):
        pack(folder, files_of(folder, exclude), archive)
