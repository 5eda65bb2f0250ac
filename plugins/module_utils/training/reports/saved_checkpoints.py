# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The checkpoints of a run on this machine, and why one cannot be used."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import Refused
from ..checkpoint import CHECKSUM, PICKLES, STATE, SUFFIXES, ZIPS, Choice, OutputFile, candidates, choose
from ..guest.code_archive import checksum


def newest(run: str, folder: Path, patterns: Sequence[str]) -> Choice:
    """Return the newest complete checkpoint below a folder."""
    return choose(run, candidates(_files(folder), patterns), lambda path: fault(folder / path))


def newest_checkpoint(name: str, folder: str, patterns: Sequence[str], required: bool) -> dict[str, Any]:
    """Return the path of the newest complete checkpoint of a run, with a warning for each newer one that is torn.

    Without a complete checkpoint, the path is empty if none is required.
    """
    try:
        choice = newest(name, Path(folder), patterns)
    except Refused as refusal:
        if required:
            raise
        return {"path": "", "warnings": [str(refusal)]}
    warnings = [f"the checkpoint {path} is torn ({why}), so {choice.path} is used" for path, why in choice.torn]
    return {"path": choice.path, "warnings": warnings}


def _files(folder: Path) -> list[OutputFile]:
    names = [Path(above, name) for above, _folders, each in os.walk(folder) for name in each]
    paths = [path for path in names if path.is_file() and not path.is_symlink()]
    return [OutputFile(path.relative_to(folder).as_posix(), path.stat().st_mtime) for path in paths]


def fault(path: Path) -> str:
    """Return why a checkpoint is not complete; empty if nothing shows that."""
    if not path.is_dir():
        return _fault_of_file(path)
    if not (path / STATE).is_file():
        return f"it has no {STATE}"
    faults = ((name, _fault_of_file(path / name)) for name in sorted(os.listdir(path)) if name.endswith(SUFFIXES))
    return next((f"{name}: {why}" for name, why in faults if why), "")


def _fault_of_file(path: Path) -> str:
    beside = path.with_name(path.name + CHECKSUM)
    try:
        if beside.is_file():
            noted = beside.read_text(encoding="ascii", errors="replace").split()
            return "" if noted and noted[0].lower() == checksum(str(path)) else f"{beside.name} has another checksum"
        if path.stat().st_size == 0:
            return "it is empty"
        if path.suffix.lower() in ZIPS and not _is_pickle(path):
            with zipfile.ZipFile(path) as archive:
                return "" if archive.namelist() else "its archive is empty"
    except zipfile.BadZipFile:
        return "its archive has no directory, so it was cut off"
    except OSError as error:
        return str(error.strerror or error)
    return ""


def _is_pickle(path: Path) -> bool:
    """Return whether a checkpoint has PyTorch's format before 1.6, which has no directory at its end."""
    with path.open("rb") as file:
        return path.suffix.lower() in PICKLES and file.read(1) == b"\x80"
