# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Choose the newest complete checkpoint among the outputs of a run; newer ones that are torn are reported."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ..errors import Refused

SUFFIXES = (".pt", ".pth", ".ckpt", ".npz", ".keras", ".h5", ".safetensors")
# Programs write these as zip archives, whose directory is at the end: a file that was cut off has none.
ZIPS = (".pt", ".pth", ".ckpt", ".npz", ".keras")
# PyTorch wrote these as pickles before 1.6, and still does on request.
PICKLES = (".pt", ".pth", ".ckpt")
# A checkpoint of Hugging Face's Trainer is a folder with these files, whose state is written last:
# https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py (_save_checkpoint).
STATE = "trainer_state.json"
_OF_TRAINER = re.compile(
    r"(?P<folder>(?:.*/)?checkpoint-\d+)/(?:trainer_state\.json|training_args\.bin|scheduler\.pt|rng_state(?:_\d+)?\.pth)"
)
# The suffix of the file next to a checkpoint that contains its checksum.
CHECKSUM = ".sha256"


class OutputFile(NamedTuple):
    """One file of the outputs; ``path`` is relative to the folder of the outputs, with slashes."""

    path: str
    modified: float


class Choice(NamedTuple):
    """The chosen checkpoint, and the newer ones that are torn, each with its fault."""

    path: str
    torn: tuple[tuple[str, str], ...]


def candidates(files: Iterable[OutputFile], patterns: Sequence[str]) -> list[OutputFile]:
    """Return the checkpoints, the newest first; without patterns, files with a usual suffix, and folders.

    Copies have times in whole seconds: of two with the same time, the one with the higher number is newer.
    """
    given = list(files)
    chosen = [file for file in given if _is_checkpoint(file.path, patterns)]
    if not patterns:
        chosen = _with_folders(given, chosen)
    by_name = sorted(chosen, key=lambda file: file.path)
    return sorted(by_name, key=lambda file: (int(file.modified), _numbers(file.path)), reverse=True)


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def _with_folders(files: Sequence[OutputFile], chosen: Sequence[OutputFile]) -> list[OutputFile]:
    """Return the checkpoints; a folder of the Trainer counts as one and replaces the files in it."""
    folders = {match["folder"] for file in files if (match := _OF_TRAINER.fullmatch(file.path))}
    newest: dict[str, float] = {}
    for file in files:
        folder = posixpath.dirname(file.path)
        if folder in folders:
            newest[folder] = max(file.modified, newest.get(folder, file.modified))
    others = [file for file in chosen if posixpath.dirname(file.path) not in folders]
    return [*others, *(OutputFile(folder, modified) for folder, modified in newest.items())]


def _is_checkpoint(path: str, patterns: Sequence[str]) -> bool:
    if path.endswith(CHECKSUM):
        return False
    if not patterns:
        return path.lower().endswith(SUFFIXES)
    return any(fnmatchcase(path if "/" in each else posixpath.basename(path), each) for each in patterns)


def choose(run: str, found: Sequence[OutputFile], fault_of: Callable[[str], str]) -> Choice:
    """Return the newest checkpoint without a fault, or refuse to resume the run."""
    torn: list[tuple[str, str]] = []
    for file in found:
        fault = fault_of(file.path)
        if not fault:
            return Choice(file.path, tuple(torn))
        torn.append((file.path, fault))
    cause = "; ".join(f"{path}: {fault}" for path, fault in torn) or "its outputs contain no checkpoint"
    remedy = "name the files with training_checkpoints, or start a new run without training_resume"
    raise Refused(f"the training run {run}", "find a complete checkpoint", cause, remedy)
