"""The files in which the programs of two runs differ, from the archives of the runs."""

from __future__ import annotations

import difflib
import hashlib
import tarfile
from pathlib import Path
from typing import Any

MOST_FILES, MOST_BYTES = 20, 1 << 20
BLOCK = 1 << 20


def differences(one: Path, other: Path) -> list[tuple[str, str, str]]:
    """Return a row for each file that differs, with the lines that each program has in its place."""
    try:
        with tarfile.open(one) as first, tarfile.open(other) as second:
            left, right = _sums(first), _sums(second)
            names = sorted(name for name in {*left, *right} if left.get(name) != right.get(name))
            rows = [
                _row(name, first if name in left else None, second if name in right else None)
                for name in names[:MOST_FILES]
            ]
    except (OSError, tarfile.TarError):
        return []
    more = len(names) - MOST_FILES
    return [*rows, ("code", f"and {more} more files", "")] if more > 0 else rows


def _sums(archive: tarfile.TarFile) -> dict[str, str]:
    """Return the checksum of each file, and the target of each link."""
    found = {}
    for member in archive:
        content = archive.extractfile(member) if member.isfile() else None
        sha256 = hashlib.sha256(member.linkname.encode(errors="surrogateescape"))
        while content and (block := content.read(BLOCK)):
            sha256.update(block)
        found[member.name] = sha256.hexdigest()
    return found


def _row(name: str, one: tarfile.TarFile | None, other: tarfile.TarFile | None) -> tuple[str, str, str]:
    title = f"code {name}"
    if one is None or other is None:
        return title, "no such file" if one is None else "a file", "no such file" if other is None else "a file"
    left, right = _lines(one, name), _lines(other, name)
    if left is None or right is None:
        return title, "differs", "differs"
    removed = added = 0
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, left, right, autojunk=True).get_opcodes():
        removed, added = removed + (end - begin) * (kind != "equal"), added + (last - first) * (kind != "equal")
    return title, f"{removed} other lines", f"{added} other lines"


def _lines(archive: tarfile.TarFile, name: str) -> list[str] | None:
    """Return the lines of a text file; None for another one."""
    member = archive.getmember(name)
    content: Any = archive.extractfile(member) if member.isfile() and member.size <= MOST_BYTES else None
    try:
        return str(content.read().decode("utf-8")).splitlines() if content else None
    except UnicodeDecodeError:
        return None
