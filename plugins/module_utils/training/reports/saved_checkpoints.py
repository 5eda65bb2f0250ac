# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The checkpoints of a run on this machine, and why one cannot be used."""

from __future__ import annotations

import glob
import json
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import CollectionError, Refused
from ..checkpoint import (
    CHECKSUM,
    DCP_METADATA,
    PICKLES,
    SAFETENSORS,
    SUFFIXES,
    ZIPS,
    OutputFile,
    candidates,
    choose,
)
from ..guest.code_archive import checksum
from . import saved_manifests

# The names of the parts of a checkpoint that several ranks write, as its metadata have them, and one of several files.
_DCP_PART, _SHARD = re.compile(rb"__\d+_\d+\.distcp"), re.compile(r"(.+-)(\d+)(-of-)(\d+)(\.\w+)")


def newest_checkpoint(name: str, folder: str, patterns: Sequence[str], required: bool) -> dict[str, Any]:
    """Return the path of the newest complete checkpoint of a run, with a warning for each newer one that is torn.

    Without a complete checkpoint, the path is empty if none is required. ``has_files`` is whether there are outputs.
    ``left_out`` has a pattern for each file that the run did not have at its end: a checkpoint that the program had
    removed by then, or a part of a copy that was killed.
    """
    outputs = Path(folder)
    files, kept = _files(outputs), _kept(outputs)
    current = [file for file in files if not kept or file.path in kept]
    left_out = [f"/{glob.escape(file.path)}" for file in files if file not in current]
    facts = {"has_files": bool(current), "left_out": left_out}
    try:
        found = candidates(current, patterns)
        choice = choose(name, found, lambda file: fault(outputs / file.path, file.last))
    except Refused as refusal:
        if required:
            raise
        return {"path": "", "warnings": [str(refusal)], **facts}
    warnings = [f"the checkpoint {path} is torn ({why}), so {choice.path} is used" for path, why in choice.torn]
    return {"path": choice.path, "warnings": warnings, **facts}


def _kept(outputs: Path) -> set[str]:
    """Return the paths of the outputs at the end of the run, from its manifest; empty if it has none."""
    try:
        manifest = saved_manifests.read(outputs.parent)
    except CollectionError:
        return set()
    listed = manifest.get("end", {}).get("outputs")
    return {str(each.get("path")) for each in listed if isinstance(each, dict)} if isinstance(listed, list) else set()


def _files(folder: Path) -> list[OutputFile]:
    names = [Path(above, name) for above, _folders, each in os.walk(folder) for name in each]
    paths = [path for path in names if path.is_file() and not path.is_symlink()]
    return [OutputFile(path.relative_to(folder).as_posix(), path.stat().st_mtime) for path in paths]


def fault(path: Path, last: str = "") -> str:
    """Return why a checkpoint is not complete; empty if nothing shows that."""
    if not path.is_dir():
        return _fault_of_file(path)
    if last and not (path / last).is_file():
        return f"it has no {last}"
    return next(_faults_below(path), "")


def _faults_below(folder: Path) -> Iterator[str]:
    """Yield the faults of the files in a checkpoint that is a folder, and the names of those that it lacks."""
    for above, _folders, names in os.walk(folder):
        lacking = sorted(_expected(Path(above), names) - set(names))
        if lacking:
            yield f"it lacks {lacking[0]}; if another node has it, let the ranks write to a folder that the nodes share"
        for name in sorted(names):
            why = _fault_of_file(Path(above, name)) if name.endswith(SUFFIXES) else ""
            if why:
                yield f"{name}: {why}"


def _expected(folder: Path, names: Sequence[str]) -> set[str]:
    """Return the files that a folder must have because of its other files."""
    expected = {DCP_METADATA} if any(_DCP_PART.fullmatch(os.fsencode(name)) for name in names) else set()
    if DCP_METADATA in names:
        expected |= {part.decode() for part in _DCP_PART.findall((folder / DCP_METADATA).read_bytes())}
    for shard in filter(None, map(_SHARD.fullmatch, names)):
        begin, number, of, count, end = shard.groups()
        first = 0 if f"{begin}{0:0{len(number)}d}{of}{count}{end}" in names else 1
        numbers = range(first, first + min(int(count), len(names) + 1))
        expected |= {f"{begin}{each:0{len(number)}d}{of}{count}{end}" for each in numbers}
    return expected


def _fault_of_file(path: Path) -> str:
    beside = path.with_name(path.name + CHECKSUM)
    try:
        if beside.is_file():
            noted = beside.read_text(encoding="ascii", errors="replace").split()
            return "" if noted and noted[0].lower() == checksum(str(path)) else f"{beside.name} has another checksum"
        if path.stat().st_size == 0:
            return "it is empty"
        return _fault_of_content(path)
    except zipfile.BadZipFile:
        return "its archive has no directory, so it was cut off"
    except OSError as error:
        return str(error.strerror or error)


def _fault_of_content(path: Path) -> str:
    if path.suffix.lower() == SAFETENSORS:
        return _fault_of_tensors(path)
    if path.suffix.lower() in ZIPS and not _is_pickle(path):
        with zipfile.ZipFile(path) as archive:
            return "" if archive.namelist() else "its archive is empty"
    return ""


def _fault_of_tensors(path: Path) -> str:
    """Return why a file of safetensors is not complete: its header has the place of each tensor.

    https://github.com/huggingface/safetensors#format
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        length = int.from_bytes(file.read(8), "little")
        try:
            header = json.loads(file.read(min(length, size)))
            ends = [int(tensor["data_offsets"][1]) for name, tensor in header.items() if name != "__metadata__"]
        except (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError, RecursionError):
            return "its header cannot be read, so it was cut off"
    return "its last tensor is not complete, so it was cut off" if size < 8 + length + max(ends, default=0) else ""


def _is_pickle(path: Path) -> bool:
    """Return whether a checkpoint has PyTorch's format before 1.6, which has no directory at its end."""
    with path.open("rb") as file:
        return path.suffix.lower() in PICKLES and file.read(1) == b"\x80"
