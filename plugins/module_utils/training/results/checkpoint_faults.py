"""Why a checkpoint on this machine is not complete: files that it lacks, or that were cut off."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..guest.code_folder import checksum
from .checkpoint import (
    CHECKSUM,
    DCP_METADATA,
    DEEPSPEED_PART,
    INCOMPLETE,
    PICKLES,
    SAFETENSORS,
    SUFFIXES,
    UNFINISHED,
    ZIPS,
    Format,
    OutputFile,
    is_later,
)

# The names of the parts of a checkpoint that several ranks write, as its metadata have them, and one of several files.
_DCP_PART, _SHARD = re.compile(rb"__\d+_\d+\.distcp"), re.compile(r"((?!shard-\d)[^/]+-)(\d+)(-of-)(\d+)(\.\w+)")
_ZERO_PART = re.compile(r"(.*zero_pp_rank_)(\d{1,6})(_mp_rank_)(\d{1,6})(_optim_states\.pt)")
INDEX, CKPT = ".index.json", ".ckpt"
# Files of checkpoints besides those with the usual suffixes; none is ever empty.
OTHERS = (".distcp", DCP_METADATA, ".pkl", ".bin", INDEX)
# HDF5 has the address of its end in its first block, at a place that depends on the version of the block:
# https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html#Superblock
_HDF5, _END_AT = b"\x89HDF\r\n\x1a\n", {0: 40, 1: 44, 2: 28, 3: 28}
# Nodes send checkpoints: this much of a description is read at most, because JSON takes many times its size in memory.
MOST_BYTES = 1 << 26
# Copies have times in whole seconds.
LATER_SECONDS = 1.0


def fault(outputs: Path, file: OutputFile, ranks: int = 0) -> str:
    """Return why a checkpoint is not complete; empty if nothing shows that. ``ranks`` is the number of its writers."""
    path = outputs / file.path
    unfinished = (path.name[: -len(CKPT)] if path.name.endswith(CKPT) else path.name) + UNFINISHED
    if path.with_name(unfinished).exists():
        return f"{unfinished} is beside it"
    if not path.is_dir():
        return _fault_of_file(path)
    return next((why for why in _faults_of_folder(path, file.format, ranks, file.path == ".") if why), "")


def _faults_of_folder(path: Path, kind: Format | None, ranks: int, is_flat: bool) -> Iterator[str]:
    is_by_rank = any(path.glob("__*.metadata"))
    if kind and kind.needed and not (kind.needed == DCP_METADATA and is_by_rank):
        yield _fault_of_needed(path / kind.needed)
    if kind and kind.tracker:
        yield _fault_by_tracker(path, kind.tracker)
    yield from _faults_below(path, ranks, is_flat)


def _fault_of_needed(path: Path) -> str:
    if not path.is_file():
        return f"it has no {path.name}"
    why = _fault_of_file(path)
    return f"{path.name}: {why}" if why else ""


def _fault_by_tracker(folder: Path, tracker: str) -> str:
    """Return why a folder is not one that its tracker, which is written after the parts of all ranks, confirms."""
    beside = folder.parent / tracker
    try:
        named, at = beside.read_text(encoding="utf-8", errors="replace").strip(), beside.stat().st_mtime
    except OSError:
        return f"{tracker}, which is written last, is not beside it"
    if not named or is_later(folder.name, named):
        return f"{tracker} names {named or 'nothing'}"
    return "it is newer than " + tracker if _newest(folder) > at + LATER_SECONDS else ""


def _newest(folder: Path) -> float:
    return max((path.stat().st_mtime for path in folder.rglob("*") if path.is_file()), default=0.0)


def _faults_below(folder: Path, ranks: int, is_flat: bool) -> Iterator[str]:
    """Yield the faults of the files in a checkpoint that is a folder, and the names of those that it lacks."""
    for above, folders, names in os.walk(folder):
        if is_flat:
            folders.clear()
        inside = Path(above)
        if INCOMPLETE in names:
            yield f"it contains {INCOMPLETE}"
        lacking = sorted(_expected(inside, names, ranks) - set(names))
        if lacking:
            yield f"it lacks {lacking[0]}; if another node has it, let the ranks write to a folder that the nodes share"
        yield from _faults_of_parts(inside, names)
        for name in sorted(names):
            why = _fault_of_file(inside / name) if name.endswith((*SUFFIXES, *OTHERS)) else ""
            if why:
                yield f"{name}: {why}"


def _faults_of_parts(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the faults of the parts that ranks wrote: parts without or after the file that is written last."""
    parts = [name for name in names if _DCP_PART.fullmatch(os.fsencode(name))]
    if parts and DCP_METADATA in names:
        newest = max((folder / name).stat().st_mtime for name in parts)
        if newest > (folder / DCP_METADATA).stat().st_mtime + LATER_SECONDS:
            yield f"its parts are newer than {DCP_METADATA}"
    if any(re.fullmatch(DEEPSPEED_PART, name) for name in names):
        yield _fault_by_tracker(folder, "latest")


def _expected(folder: Path, names: Sequence[str], ranks: int) -> set[str]:
    """Return the files that a folder must have because of its other files."""
    parts = [name for name in names if _DCP_PART.fullmatch(os.fsencode(name))]
    own = {f"{name.rpartition('_')[0]}{DCP_METADATA}" for name in parts}
    is_by_rank = DCP_METADATA not in names and bool(own & set(names))
    expected = own if is_by_rank else {DCP_METADATA} if parts else set()
    if DCP_METADATA in names:
        expected |= {part.decode() for part in _DCP_PART.findall(_content(folder / DCP_METADATA))}
        # Lightning writes this file after the parts of its strategies.
        expected |= {"meta.pt"} if folder.suffix == CKPT else set()
    for name in names:
        expected |= _indexed(folder / name) if name.endswith(INDEX) else _others_of(name, names)
    return expected | _of_all_ranks(names, ranks)


def _indexed(path: Path) -> set[str]:
    """Return the files that an index names; none if it cannot be read, which is another fault."""
    try:
        return {str(name) for name in json.loads(_content(path))["weight_map"].values()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return set()


def _others_of(name: str, names: Sequence[str]) -> set[str]:
    """Return all files of which one has the name ...-N-of-M, with the index of those that have one."""
    shard = _SHARD.fullmatch(name)
    if not shard:
        return set()
    begin, number, of, count, end = shard.groups()
    first = 0 if f"{begin}{0:0{len(number)}d}{of}{count}{end}" in names else 1
    numbers = range(first, first + min(int(count), len(names) + 1))
    index = {f"{begin.rstrip('-')}{end}{INDEX}"} if end in (SAFETENSORS, ".bin") else set()
    return index | {f"{begin}{each:0{len(number)}d}{of}{count}{end}" for each in numbers}


def _of_all_ranks(names: Sequence[str], ranks: int) -> set[str]:
    """Return the parts that the ranks of DeepSpeed write: of each one, or at least up to the last that wrote one."""
    found = [match.groups() for match in map(_ZERO_PART.fullmatch, names) if match]
    models = {(begin, of, model, end) for begin, _rank, of, model, end in found}
    if not found:
        return set()
    count = max(max(int(rank) for _begin, rank, *_more in found) + 1, ranks // len(models))
    numbers = range(min(count, len(names) + 1))
    return {f"{begin}{rank}{of}{model}{end}" for begin, of, model, end in models for rank in numbers}


def _fault_of_file(path: Path) -> str:
    beside = path.with_name(path.name + CHECKSUM)
    try:
        if beside.is_file():
            noted = beside.read_text(encoding="ascii", errors="replace").split()
            return "" if noted and noted[0].lower() == checksum(str(path)) else f"{beside.name} has another checksum"
        return "it is empty" if path.stat().st_size == 0 else _fault_of_content(path)
    except zipfile.BadZipFile:
        return "its archive has no directory, so it was cut off"
    except OSError as error:
        return str(error.strerror or error)


def _fault_of_content(path: Path) -> str:
    if path.suffix.lower() == SAFETENSORS:
        return _fault_of_tensors(path)
    if path.suffix == ".json":
        return _fault_of_json(path)
    if path.suffix.lower() == ".h5":
        return _fault_of_hdf5(path)
    if path.name.endswith(DCP_METADATA):
        # A pickle ends with its instruction to stop.
        return "" if _end(path) == b"." else "it was cut off"
    if _is_zip(path):
        with zipfile.ZipFile(path) as archive:
            return "" if archive.namelist() else "its archive is empty"
    return ""


def _fault_of_json(path: Path) -> str:
    if path.stat().st_size > MOST_BYTES:
        return "" if _end(path) in b"}\n" else "it is not JSON, so it was cut off"
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return "it is not JSON, so it was cut off"
    return ""


def _fault_of_hdf5(path: Path) -> str:
    with path.open("rb") as file:
        begin = file.read(64)
    at = _END_AT.get(begin[8]) if begin.startswith(_HDF5) and len(begin) > 8 else None
    if at is None:
        return "it is not a file of HDF5"
    end = int.from_bytes(begin[at : at + 8], "little")
    return "it was cut off" if not 0 < end <= path.stat().st_size else ""


def _fault_of_tensors(path: Path) -> str:
    """Return why a file of safetensors is not complete: its header has the place of each tensor.

    https://github.com/huggingface/safetensors#format
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        if length > MOST_BYTES:
            return f"its header has {length} bytes, more than that of any model"
        try:
            header = json.loads(file.read(min(length, size)))
            ends = [int(tensor["data_offsets"][1]) for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError, RecursionError):
            return "its header cannot be read, so it was cut off"
    return "its last tensor is not complete, so it was cut off" if size < 8 + length + max(ends, default=0) else ""


def _is_zip(path: Path) -> bool:
    """Return whether a file should be an archive: PyTorch's format before 1.6 has no directory at its end."""
    with path.open("rb") as file:
        begin = file.read(4)
    suffix = path.suffix.lower()
    if suffix in (".bin", ".pkl"):
        return begin == b"PK\x03\x04"
    return suffix in ZIPS and not (suffix in PICKLES and begin.startswith(b"\x80"))


def _content(path: Path) -> bytes:
    """Return the first bytes of a file; a larger one is incomplete for its reader."""
    with path.open("rb") as file:
        return file.read(MOST_BYTES)


def _end(path: Path) -> bytes:
    """Return the last byte of a file."""
    with path.open("rb") as file:
        file.seek(-1 if path.stat().st_size else 0, os.SEEK_END)
        return file.read(1)
