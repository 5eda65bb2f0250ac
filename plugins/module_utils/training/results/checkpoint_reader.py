"""The checkpoints in a folder of this machine, also of a job that runs: complete or why not, step, parts, optimizer."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ...core import regular_file
from .checkpoint import (
    DCP_METADATA,
    SETTLED_SECONDS,
    WRITTEN,
    ZIPS,
    OutputFile,
    candidates,
    has_optimizer,
    is_alike,
    step_of,
)
from .checkpoint_faults import MOST_BYTES, fault
from .manifest import number

TRAINER_STATE, MOST_OF_A_STATE = "trainer_state.json", 1 << 20
# The torn checkpoints that are read before a complete one, and the times from which the usual interval follows.
MOST_TORN, MOST_TIMES = 8, 64


def read(folder: Path, patterns: Sequence[str], ranks: int, now: float) -> dict[str, Any]:
    """Return the newest complete checkpoint of a folder after newer ones that are not complete, and their interval.

    ``bytes`` is the size of all files.
    ``ranks`` is the number of their writers, 0 if it is unknown, and ``now`` the time of this machine.
    """
    files = files_in(folder)
    found = candidates(files, patterns)
    seen: list[dict[str, Any]] = []
    for file in found[: MOST_TORN + 1]:
        age = max(0.0, now - file.modified)
        why = _fault(folder, file, ranks) or (WRITTEN if age < SETTLED_SECONDS else "")
        facts = facts_of(folder, file, files)
        seen.append({**facts, "age": age, "why": why, "kind": file.format.name if file.format else "a file"})
        if not why:
            break
    size = sum(_size(folder / file.path) for file in files)
    return {"seen": seen, "interval": _interval(found), "bytes": size}


def _fault(folder: Path, file: OutputFile, ranks: int) -> str:
    try:
        return fault(folder, file, ranks)
    except OSError:
        return WRITTEN


def _interval(found: Sequence[OutputFile]) -> float | None:
    """Return the usual time between the checkpoints whose names differ from the newest one only in numbers."""
    times = [file.modified for file in found if is_alike(file.path, found[0].path)][:MOST_TIMES]
    between = [newer - older for newer, older in zip(times, times[1:]) if newer > older]
    return median(between) if between else None


def facts_of(folder: Path, file: OutputFile, files: Sequence[OutputFile]) -> dict[str, object]:
    """Return the path of a checkpoint, its step, if known, the number and size of its files, and its optimizer."""
    names = names_of(file, files)
    return {
        "path": file.path,
        "step": step_in(folder / file.path),
        "parts": len(names),
        "bytes": sum(_size(folder / name) for name in names),
        "optimizer": _optimizer_in(folder, file, names),
    }


def names_of(file: OutputFile, files: Sequence[OutputFile]) -> list[str]:
    inside = "" if file.path == "." else f"{file.path}/"
    return [each.path for each in files if each.path.startswith(inside)] if file.format else [file.path]


def step_in(path: Path) -> int | None:
    """Return the step that Hugging Face's Trainer writes into a checkpoint, or the one in its name."""
    try:
        state = regular_file.content(str(path / TRAINER_STATE), MOST_OF_A_STATE)
        step = number(json.loads(state)["global_step"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        step = None
    return step_of(path.as_posix()) if step is None else int(step)


def _optimizer_in(folder: Path, file: OutputFile, names: Sequence[str]) -> bool | None:
    """Return whether a checkpoint has the optimizer, by the names of its files, or by the names of values in it.

    Programs choose the names of values, so a missing name shows nothing.
    """
    by_names = has_optimizer(file.format, names)
    if by_names is not None:
        return by_names
    described: Mapping[str, Callable[[Path], bytes]] = {DCP_METADATA: _begin, **dict.fromkeys(ZIPS, _pickle)}
    for name in names:
        reader = next((described[end] for end in described if name.endswith(end)), None)
        if reader and b"optim" in reader(folder / name):
            return True
    return None


def _begin(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def _pickle(path: Path) -> bytes:
    """Return the names and values in an archive of PyTorch, without its tensors."""
    try:
        with zipfile.ZipFile(path) as archive:
            name = next((each for each in archive.namelist() if each.endswith("/data.pkl")), "")
            return archive.open(name).read(MOST_BYTES) if name else b""
    except (OSError, ValueError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile, EOFError):
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def files_in(folder: Path) -> list[OutputFile]:
    paths = [Path(above, name) for above, _folders, names in os.walk(folder) for name in names]
    found = [(path.relative_to(folder).as_posix(), _modified(path)) for path in paths]
    return [OutputFile(name, modified) for name, modified in found if modified is not None]


def _modified(path: Path) -> float | None:
    """Return the time of a regular file; None for others, and for one that the program has just removed."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime if stat.S_ISREG(status.st_mode) else None
