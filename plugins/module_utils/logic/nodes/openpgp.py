# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Fingerprints of the keys in a file, by the format of OpenPGP (RFC 4880), so that no node needs GnuPG."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

BLOCK = re.compile(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----(.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL)
PUBLIC_KEY = 6


def fingerprints(encoded: str) -> list[str]:
    """The fingerprints of all primary keys in a file, which is given in base64; its subkeys belong to them."""
    content = base64.b64decode(encoded)
    blocks = [_unarmored(block) for block in BLOCK.findall(content)] or [content]
    try:
        bodies = [body for block in blocks for tag, body in _packets(block) if tag == PUBLIC_KEY]
    except IndexError:
        return []
    # Older and newer versions of keys are told by other sums; no repository is known that has them.
    return [_fingerprint(body) for body in bodies if body[:1] == b"\x04"]


def key_misfits(encoded: str, name: str, fingerprint: str) -> list[str]:
    """A sentence if a file is not the one key that it should be: every key in it would be trusted."""
    found = fingerprints(encoded)
    wanted = re.sub(r"\s", "", fingerprint).upper()
    if found == [wanted]:
        return []
    return [f"The key {name} is {' and '.join(found) or 'no OpenPGP key'}, not {wanted}."]


def _unarmored(block: bytes) -> bytes:
    """The bytes of an armored block: what stands after the empty line, without its checksum."""
    _headers, _empty, text = block.replace(b"\r", b"").partition(b"\n\n")
    lines = [line for line in text.splitlines() if not line.startswith(b"=")]
    try:
        return base64.b64decode(b"".join(lines), validate=True)
    except binascii.Error:
        return b""


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and body of each packet, up to the first byte that begins none."""
    position = 0
    while position < len(data) and data[position] & 0x80:
        tag, start, length = _header(data, position)
        yield tag, data[start : start + length]
        position = start + length


def _header(data: bytes, position: int) -> tuple[int, int, int]:
    """Tag, where the body begins, and its length; keys have no lengths in parts."""
    first, second = data[position], data[position + 1]
    if not first & 0x40:
        size = {0: 1, 1: 2, 2: 4}.get(first & 3, 0)
        start = position + 1 + size
        return first >> 2 & 15, start, int.from_bytes(data[position + 1 : start], "big") if size else len(data) - start
    if second < 192:
        return first & 63, position + 2, second
    if second < 224:
        return first & 63, position + 3, (second - 192 << 8) + data[position + 2] + 192
    return first & 63, position + 6, int.from_bytes(data[position + 2 : position + 6], "big")


def _fingerprint(body: bytes) -> str:
    """The fingerprint of a key of version 4."""
    hashed = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body)  # noqa: S324  # OpenPGP defines it so
    return hashed.hexdigest().upper()
