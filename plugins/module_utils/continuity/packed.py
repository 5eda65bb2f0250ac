# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Columns of lines in compressed blocks: the lines of all ranks fit in memory, and are unpacked rank by rank."""

from __future__ import annotations

import zlib
from array import array
from itertools import accumulate, chain, islice
from operator import xor
from typing import Any

from .columns import Columns

# A block of this number of lines compresses as well as a longer one.
BLOCK = 512
_FASTEST = 1
# Integer types of the same size, for the bits of a column's numbers.
_BITS = {4: "I", 8: "Q"}
_ALWAYS = ("step", "kind", "t", "seen", "rate")


class PackedColumns:
    """Columns in compressed blocks; numbers keep all their bits."""

    __slots__ = ("_blocks", "count")

    def __init__(self) -> None:
        self._blocks: list[tuple[int, bool, bytes]] = []
        self.count = 0

    @classmethod
    def of(cls, columns: Columns) -> PackedColumns:
        """Return columns as blocks."""
        packed = cls()
        for begin in range(0, len(columns), BLOCK):
            packed.add(columns.between(begin, begin + BLOCK))
        return packed

    def add(self, columns: Columns) -> None:
        """Add columns as one block."""
        # Lines at the times of their stamps do not need both.
        is_seen = columns.at == columns.seen
        names = _ALWAYS if is_seen else (*_ALWAYS, "at")
        text = b"".join(_planes(getattr(columns, name)) for name in names)
        self._blocks.append((len(columns), is_seen, zlib.compress(text, _FASTEST)))
        self.count += len(columns)

    def unpacked(self) -> Columns:
        """Return the columns."""
        columns = Columns()
        for count, is_seen, block in self._blocks:
            text, place = zlib.decompress(block), 0
            for name in _ALWAYS if is_seen else (*_ALWAYS, "at"):
                column = getattr(columns, name)
                end = place + count * column.itemsize
                _extend(column, text[place:end])
                place = end
            if is_seen:
                columns.at.extend(columns.seen[-count:])
        return columns


def _planes(column: array[Any]) -> bytes:
    """Return the bytes of the changes between neighbours: the first byte of each, then the second one, and so on.

    Neighbours share most of their bits, so most of these bytes are zero.
    """
    bits = array(_BITS[column.itemsize], column.tobytes())
    changes = array(bits.typecode, chain(bits[:1], map(xor, bits, islice(bits, 1, None)))).tobytes()
    return b"".join(changes[place :: bits.itemsize] for place in range(bits.itemsize))


def _extend(column: array[Any], planes: bytes) -> None:
    """Append the numbers of a block to a column."""
    size = column.itemsize
    count = len(planes) // size
    changes = bytearray(len(planes))
    for place in range(size):
        changes[place::size] = planes[place * count : (place + 1) * count]
    code = _BITS[size]
    column.frombytes(array(code, accumulate(array(code, bytes(changes)), xor)).tobytes())
