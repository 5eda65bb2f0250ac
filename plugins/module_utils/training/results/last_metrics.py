"""The last metrics that a program wrote to its outputs: JSON lines, CSV with a header, TensorBoard's event files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Union

MOST_FILES, MOST_METRICS = 20, 6
HEAD_BYTES, TAIL_BYTES = 4096, 16384
# The event files of TensorBoard have this in their names.
EVENTS, EVENT_BYTES = "tfevents", 1 << 19
HEAD, CHECKSUM = 12, 4
# The numbers of fields in the protocol buffers.
EVENT_SUMMARY, SUMMARY_VALUE, VALUE_TAG, VALUE_NUMBER, VALUE_TENSOR = 5, 1, 1, 2, 8
TENSOR_CONTENT, TENSOR_FLOATS, TENSOR_DOUBLES = 4, 5, 6
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
LONGEST_TAG = 200
Field = Union[int, bytes]


def last_metrics(results: str, runs: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the last numbers in the outputs of runs, by the names of runs and metrics."""
    return {run: of_outputs(Path(results, run, "outputs")) for run in runs}


def of_outputs(folder: Path) -> dict[str, float]:
    """Return the last value of each metric; of several files with a metric, the newest one counts."""
    found: dict[str, float] = {}
    for path in sorted(_files(folder), key=lambda path: path.stat().st_mtime):
        found.update(_last(path))
    return dict(list(found.items())[:MOST_METRICS])


def _files(folder: Path) -> Iterable[Path]:
    paths = [Path(above, name) for above, _folders, names in os.walk(folder) for name in names]
    kinds = [path for path in paths if path.suffix in (".csv", ".jsonl") or EVENTS in path.name]
    return [path for path in kinds if path.is_file() and not path.is_symlink()][:MOST_FILES]


def _last(path: Path) -> dict[str, float]:
    try:
        if EVENTS in path.name:
            return _numbers(numbers(_end(path)).items())
        head, tail = _ends(path)
    except OSError:
        return {}
    lines = [line for line in tail.splitlines() if line.strip()]
    if not lines:
        return {}
    return _of_csv(head.splitlines()[:1], lines[-1]) if path.suffix == ".csv" else _of_json(lines[-1])


def _ends(path: Path) -> tuple[str, str]:
    """Return the beginning and the end of a file."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return head.decode("utf-8", "replace"), file.read(TAIL_BYTES).decode("utf-8", "replace")


def _end(path: Path) -> bytes:
    """Return the end of an event file, which may be large."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - EVENT_BYTES))
        return file.read(EVENT_BYTES)


def _of_csv(header: list[str], line: str) -> dict[str, float]:
    names = next(csv.reader(io.StringIO("".join(header))), [])
    values = next(csv.reader(io.StringIO(line)), [])
    return _numbers(zip(names, values)) if len(names) == len(values) else {}


def _of_json(line: str) -> dict[str, float]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return _numbers(record.items()) if isinstance(record, dict) else {}


def _numbers(pairs: Iterable[tuple[object, object]]) -> dict[str, float]:
    found = {}
    for name, value in pairs:
        try:
            number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
        except ValueError:
            continue
        if math.isfinite(number):
            found[str(name)[:40]] = number
    return found


def numbers(data: bytes) -> dict[str, float]:
    """Return the last number of each tag, from the end of a file."""
    found: dict[str, float] = {}
    for event in _events(data):
        found.update(_readable(event))
    return found


def _readable(event: bytes) -> dict[str, float]:
    """Return the numbers of an event; none if it is malformed."""
    try:
        return dict(_of_event(event))
    except (ValueError, IndexError, struct.error):
        return {}


def _events(data: bytes) -> Iterator[bytes]:
    """Yield the data of whole records from the first one on that is found."""
    at = next((place for place in range(max(0, len(data) - HEAD)) if _begins(data, place)), len(data))
    while _begins(data, at):
        end = at + HEAD + int.from_bytes(data[at : at + 8], "little")
        if end + CHECKSUM > len(data):
            return
        yield data[at + HEAD : end]
        at = end + CHECKSUM


def _begins(data: bytes, at: int) -> bool:
    head = data[at : at + 8]
    return len(data) >= at + HEAD and _checksum(head) == int.from_bytes(data[at + 8 : at + HEAD], "little")


def _of_event(event: bytes) -> Iterator[tuple[str, float]]:
    for number, summary in _fields(event):
        if number == EVENT_SUMMARY and isinstance(summary, bytes):
            for each, value in _fields(summary):
                if each == SUMMARY_VALUE and isinstance(value, bytes):
                    yield from _of_value(dict(_fields(value)))


def _of_value(value: dict[int, Field]) -> Iterator[tuple[str, float]]:
    tag, plain, tensor = (value.get(number, b"") for number in (VALUE_TAG, VALUE_NUMBER, VALUE_TENSOR))
    if not isinstance(tag, bytes) or not tag:
        return
    name = tag[:LONGEST_TAG].decode("utf-8", "replace")
    if isinstance(plain, bytes) and plain:
        yield name, struct.unpack("<f", plain)[0]
    elif isinstance(tensor, bytes) and tensor:
        yield from ((name, number) for number in _of_tensor(dict(_fields(tensor))))


def _of_tensor(tensor: dict[int, Field]) -> Iterator[float]:
    """Yield the number of a tensor that has only one."""
    for field in (TENSOR_CONTENT, TENSOR_FLOATS, TENSOR_DOUBLES):
        content = tensor.get(field)
        if isinstance(content, bytes) and len(content) in (4, 8):
            yield struct.unpack("<f" if len(content) == 4 else "<d", content)[0]
            return


def _fields(data: bytes) -> Iterator[tuple[int, Field]]:
    """Yield number and content of each field of a protocol buffer."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind, content = key & 7, b""
        if kind == VARINT:
            number, at = _varint(data, at)
            yield key >> 3, number
            continue
        if kind not in (EIGHT, BYTES, FOUR):
            raise ValueError(f"a field has the kind {kind}")
        size, at = _varint(data, at) if kind == BYTES else (8 if kind == EIGHT else 4, at)
        content, at = data[at : at + size], at + size
        if len(content) < size:
            raise ValueError("a field is longer than its record")
        yield key >> 3, content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits in each byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number has more than 64 bits")


def _entry(number: int) -> int:
    for _bit in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    return number


_TABLE = [_entry(number) for number in range(256)]


def _checksum(data: bytes) -> int:
    """Return the CRC-32C of some bytes as the files have it: rotated, plus a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
