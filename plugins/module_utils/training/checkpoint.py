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
DCP_METADATA, SAFETENSORS = ".metadata", ".safetensors"
# Checkpoints that are folders: a file that shows it, and the file that is written last; empty if that is unknown.
FOLDERS = tuple(
    (re.compile(rf"(?P<folder>{folder})/(?:{file})"), last)
    for folder, file, last in (
        # Hugging Face's Trainer:
        # https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py (_save_checkpoint).
        (
            r"(?:.*/)?checkpoint-\d+",
            r"trainer_state\.json|training_args\.bin|scheduler\.pt|rng_state(?:_\d+)?\.pth",
            "trainer_state.json",
        ),
        # https://github.com/huggingface/accelerate/blob/main/src/accelerate/checkpointing.py (save_accelerator_state).
        (r".+", r"random_states_\d+\.pkl", "random_states_0.pkl"),
        # torch.distributed.checkpoint, also that of FSDP.
        (r".+", r"\.metadata|__\d+_\d+\.distcp", DCP_METADATA),
        # DeepSpeed, and Lightning with a strategy that writes the parts of the ranks.
        (r".+", r"[^/]*(?:model|optim)_states\.pt", ""),
        (r".+?\.ckpt", r".+", ""),
    )
)
# The suffix of the file next to a checkpoint that contains its checksum.
CHECKSUM = ".sha256"
_NUMBER = re.compile(r"\d+")


class OutputFile(NamedTuple):
    """One file of the outputs; ``path`` is relative to the folder of the outputs, with slashes.

    A checkpoint may be a folder; ``last`` is the file that is written last, without which it is torn.
    """

    path: str
    modified: float
    last: str = ""


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
    return [int(number) for number in _NUMBER.findall(path)]


def _with_folders(files: Sequence[OutputFile], chosen: Sequence[OutputFile]) -> list[OutputFile]:
    """Return the checkpoints; a folder that is one replaces all files below it."""
    folders = _folders(files)
    newest: dict[str, float] = {}
    inside = set()
    for file in files:
        folder = next((above for above in _above(file.path) if above in folders), "")
        if folder:
            inside.add(file.path)
            newest[folder] = max(file.modified, newest.get(folder, file.modified))
    others = [file for file in chosen if file.path not in inside]
    return [*others, *(OutputFile(folder, modified, folders[folder]) for folder, modified in newest.items())]


def _folders(files: Sequence[OutputFile]) -> dict[str, str]:
    """Return the folders that are checkpoints, each with the file that is written last.

    One that was cut off early has nothing that shows it, except that its name differs only in numbers.
    """
    found: dict[str, str] = {}
    for file in files:
        for pattern, last in FOLDERS:
            if match := pattern.fullmatch(file.path):
                found[match["folder"]] = found.get(match["folder"]) or last
    alike = {_NUMBER.sub("", folder): last for folder, last in found.items() if last}
    for folder in {above for file in files for above in _above(file.path)}:
        if _NUMBER.sub("", folder) in alike:
            found.setdefault(folder, alike[_NUMBER.sub("", folder)])
    return found


def _above(path: str) -> list[str]:
    """Return the folders that contain a path, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _is_checkpoint(path: str, patterns: Sequence[str]) -> bool:
    if path.endswith(CHECKSUM):
        return False
    if not patterns:
        return path.lower().endswith(SUFFIXES)
    return any(fnmatchcase(path if "/" in each else posixpath.basename(path), each) for each in patterns)


def choose(run: str, found: Sequence[OutputFile], fault_of: Callable[[OutputFile], str]) -> Choice:
    """Return the newest checkpoint without a fault, or refuse to resume the run."""
    torn: list[tuple[str, str]] = []
    for file in found:
        fault = fault_of(file)
        if not fault:
            return Choice(file.path, tuple(torn))
        torn.append((file.path, fault))
    cause = "; ".join(f"{path}: {fault}" for path, fault in torn) or "its outputs contain no checkpoint"
    remedy = "name the files with training_checkpoints, or start a new run without training_resume"
    raise Refused(f"the training run {run}", "find a complete checkpoint", cause, remedy)
