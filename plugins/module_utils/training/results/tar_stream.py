# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The files in a tar archive of a node, read in constant memory.

The module tarfile reads each extended header into memory, and writes the holes of sparse files.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from .node_stream import BLOCK, EndedEarly, NodeStream, StreamError

HEADER = tarfile.BLOCKSIZE
MOST_EXTENDED_BYTES, MOST_EXTENDED = 1 << 16, 4
# After the last file, tar fills its last record.
MOST_AFTER_THE_END = 1 << 20
LATEST = 1 << 40
EXTENDED = (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE)
REGULAR = (tarfile.REGTYPE, tarfile.AREGTYPE)


@dataclass(frozen=True)
class Member:
    """The header of one file."""

    name: str
    size: int
    time: int


def members(stream: NodeStream) -> Iterator[Member]:
    """Yield the header of each file; the caller reads its content before it asks for the next one."""
    more: dict[str, str] = {}
    extended = 0
    while True:
        header = _header(stream.exactly(HEADER))
        if header is None:
            _check_end(stream)
            return
        if header.type in EXTENDED:
            extended += 1
            if extended > MOST_EXTENDED or header.size > MOST_EXTENDED_BYTES:
                raise StreamError(
                    f"the node sent an extended header of {header.size} bytes, or more than {MOST_EXTENDED}"
                )
            more.update(_extended(header, _padded(stream, header.size)))
            continue
        yield _member(header, more)
        more, extended = {}, 0


def content(stream: NodeStream, size: int) -> Iterator[bytes]:
    """Yield the content of a file."""
    left = size
    while left:
        data = stream.some(min(left, BLOCK))
        if not data:
            raise EndedEarly("the output of the node ended early")
        left -= len(data)
        yield data
    stream.exactly(-size % HEADER)


def _header(block: bytes) -> tarfile.TarInfo | None:
    """Return a header; None at the end of the archive."""
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        if not block.strip(b"\0"):
            return None
        raise StreamError(f"the node sent no tar archive: {error}") from error


def _member(header: tarfile.TarInfo, more: dict[str, str]) -> Member:
    try:
        name, size, time = more.get("path", header.name), int(more.get("size", header.size)), float(header.mtime)
        time = float(more.get("mtime", time))
    except ValueError as error:
        raise StreamError(f"the node sent a malformed extended header: {error}") from error
    name = name[2:] if name.startswith("./") else name
    if header.type not in REGULAR or any(key.startswith("GNU.sparse") for key in more):
        raise StreamError(f"the node sent {name}, which is not one of its outputs")
    if size < 0 or not 0 <= time < LATEST:
        raise StreamError(f"the node sent {name} with a size or a time that no file has")
    return Member(name, size, int(time))


def _extended(header: tarfile.TarInfo, data: bytes) -> dict[str, str]:
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.split(b"\0")[0].decode("utf-8", "surrogateescape")}
    found: dict[str, str] = {}
    while data:
        length, space, _rest = data.partition(b" ")
        if not space or not length.isdigit() or not len(length) + 1 < int(length[:8]) <= len(data):
            raise StreamError("the node sent a malformed extended header")
        record, data = data[len(length) + 1 : int(length)], data[int(length) :]
        key, _equal, value = record.rstrip(b"\n").partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
    return found


def _padded(stream: NodeStream, size: int) -> bytes:
    data = stream.exactly(size)
    stream.exactly(-size % HEADER)
    return data


def _check_end(stream: NodeStream) -> None:
    left = MOST_AFTER_THE_END
    while data := stream.some():
        left -= len(data)
        if left < 0:
            raise StreamError("the node sent data after the end of its archive")
