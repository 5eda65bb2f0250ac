"""Choose the newest complete checkpoint among the outputs of a run; newer ones that are torn are reported."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence, Set
from fnmatch import fnmatchcase
from typing import NamedTuple

from ...errors import Refused

SUFFIXES = (".pt", ".pth", ".ckpt", ".npz", ".keras", ".h5", ".safetensors")
# Programs write these as zip archives, whose directory is at the end: a file that was cut off has none.
ZIPS = (".pt", ".pth", ".ckpt", ".npz", ".keras")
# PyTorch wrote these as pickles before 1.6, and still does on request.
PICKLES = (".pt", ".pth", ".ckpt")
DCP_METADATA, SAFETENSORS = ".metadata", ".safetensors"
# Transformers has this file in a folder until the checkpoint is complete, and NeMo one with this end beside it.
INCOMPLETE, UNFINISHED = "checkpoint-is-incomplete.txt", "-unfinished"
# A checkpoint whose files have just changed may still be written, also if its format has no file that comes last.
SETTLED_SECONDS, WRITTEN = 3.0, "its files changed a moment ago"

IN_SEVERAL_FILES = "weights in several files"
DEEPSPEED_PART = r"[^/]*\d[_-](?:model|optim)_states\.pt"


class Format(NamedTuple):
    """A checkpoint that is a folder: files that show it, and the file without which it is incomplete, if any.

    ``tracker`` is a file beside the folder that names the newest complete one. ``folder`` and ``complete`` are words of
    the documentation.
    """

    name: str
    folder: str
    complete: str
    sign: re.Pattern[str]
    needed: str = ""
    tracker: str = ""


def _inside(folder: str, files: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<folder>{folder})/(?:{files})")


FORMATS = (
    # https://github.com/huggingface/transformers/blob/main/src/transformers/trainer.py (_save_checkpoint).
    Format(
        "Hugging Face's Trainer",
        "`checkpoint-N`",
        "`trainer_state.json`, and no `checkpoint-is-incomplete.txt`",
        _inside(
            r"(?:.*/)?checkpoint-\d+",
            r"trainer_state\.json|training_args\.bin|scheduler\.pt|rng_state(?:_\d+)?\.pth|(?:adapter_)?config\.json|"
            r"checkpoint-is-incomplete\.txt",
        ),
        "trainer_state.json",
    ),
    # https://github.com/huggingface/accelerate/blob/main/src/accelerate/checkpointing.py (save_accelerator_state).
    Format(
        "accelerate's `save_state`",
        "with `random_states_N.pkl`",
        "`random_states_0.pkl`",
        _inside(".+", r"random_states_\d+\.pkl"),
        "random_states_0.pkl",
    ),
    # https://github.com/pytorch/pytorch/blob/main/torch/distributed/checkpoint/filesystem.py (finish).
    Format(
        "`torch.distributed.checkpoint`, FSDP, torchtitan",
        "with `.metadata` or `*.distcp`",
        "`.metadata`, not older than the parts, or `__N.metadata` of each rank; the parts that it names",
        _inside(".+", r"\.metadata(?:\.tmp)?|__\d+\.metadata|__\d+_\d+\.distcp"),
        DCP_METADATA,
    ),
    # https://github.com/deepspeedai/DeepSpeed/blob/master/deepspeed/runtime/engine.py (save_checkpoint).
    Format(
        "DeepSpeed",
        "with `*_states.pt`",
        "beside it `latest`, which names it or a newer one; the parts of all ranks",
        _inside(".+", DEEPSPEED_PART),
        tracker="latest",
    ),
    # https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/checkpointing.py.
    Format(
        "Megatron-LM",
        "`iter_N`",
        "beside it `latest_checkpointed_iteration.txt`, which names it or a newer one",
        _inside(r"(?:.*/)?iter_\d{7}", ".+"),
        tracker="latest_checkpointed_iteration.txt",
    ),
    # https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/pytorch/strategies/fsdp.py.
    Format(
        "Lightning with a sharded strategy, NeMo",
        "`*.ckpt`",
        "as its content, `meta.pt` with `.metadata`; no `*-unfinished` beside it",
        _inside(r".+?\.ckpt", ".+"),
    ),
    # https://github.com/keras-team/keras/blob/master/keras/src/callbacks/backup_and_restore.py.
    Format(
        "Keras' `BackupAndRestore`",
        "with `training_metadata.json`",
        "`latest.weights.h5`",
        _inside(".+", r"training_metadata\.json"),
        "latest.weights.h5",
    ),
    # https://huggingface.co/docs/transformers/en/models#sharded-checkpoints
    Format(
        IN_SEVERAL_FILES,
        "with `*-N-of-N.safetensors` or `.bin`",
        "all N files, and the index that is written after them",
        _inside(".+", r"[^/]+-\d+-of-\d+\.(?:safetensors|bin)|[^/]+\.(?:safetensors|bin)\.index\.json"),
    ),
)
# The suffix of the file next to a checkpoint that contains its checksum.
CHECKSUM = ".sha256"
_NUMBER = re.compile(r"\d+")
# The step in a name, such as those of Trainer, Megatron, DeepSpeed and Lightning; other numbers may be epochs.
_STEP = re.compile(r"(?:^|[^a-z])(?:(?:global[-_]?)?step|iter(?:ation)?)[-_=]?(\d{1,15})(?!\d)|^checkpoint-(\d{1,15})$")
# The formats whose optimizer has separate files, and the names of these.
WITH_OPTIMIZER = ("Hugging Face's Trainer", "accelerate's `save_state`")
_OPTIMIZER = re.compile(r"(?:^|/)optimizer|optim_states|(?:^|/)pytorch_model_fsdp")


class OutputFile(NamedTuple):
    """One file of the outputs; ``path`` is relative to the folder of the outputs, with slashes.

    A checkpoint may be a folder of a ``format``.
    """

    path: str
    modified: float
    format: Format | None = None


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
        chosen = _without_weights(_with_folders(given, chosen), {file.path for file in given})
    by_name = sorted(chosen, key=lambda file: file.path)
    return sorted(by_name, key=lambda file: (int(file.modified), _numbers(file.path)), reverse=True)


def _without_weights(found: list[OutputFile], paths: Set[str]) -> list[OutputFile]:
    """Return the checkpoints without weights alone if others have the optimizer, such as those of Trainer.

    Scripts write such weights when they end, also at a signal, and no run can resume from them.
    """
    if not any(_is_complete_with_optimizer(file, paths) for file in found):
        return found
    return [file for file in found if not _is_weights(file)]


def _is_complete_with_optimizer(file: OutputFile, paths: Set[str]) -> bool:
    """Return whether a folder is complete: ``save_pretrained`` may write weights into one with a name of Trainer's."""
    if file.format is None or file.format.name not in WITH_OPTIMIZER:
        return False
    return posixpath.normpath(f"{file.path}/{file.format.needed}") in paths


def _is_weights(file: OutputFile) -> bool:
    return file.format.name == IN_SEVERAL_FILES if file.format else file.path.lower().endswith(SAFETENSORS)


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


def _folders(files: Sequence[OutputFile]) -> dict[str, Format]:
    """Return the folders that are checkpoints, each with its format.

    One that was cut off early has nothing that shows it, except that its name differs only in numbers.
    """
    found: dict[str, Format] = {}
    for each in FORMATS:
        for file in files:
            # Files in the folder of the outputs itself are in the folder ".".
            if match := each.sign.fullmatch(file.path if "/" in file.path else f"./{file.path}"):
                found.setdefault(match["folder"], each)
    alike = {_NUMBER.sub("", folder): each for folder, each in found.items() if each.needed or each.tracker}
    for folder in {above for file in files for above in _above(file.path)}:
        if _NUMBER.sub("", folder) in alike:
            found.setdefault(folder, alike[_NUMBER.sub("", folder)])
    return found


def _above(path: str) -> list[str]:
    """Return the folders that contain a path, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))] or ["."]


def _is_checkpoint(path: str, patterns: Sequence[str]) -> bool:
    if path.endswith(CHECKSUM):
        return False
    if not patterns:
        return path.lower().endswith(SUFFIXES)
    return any(fnmatchcase(path if "/" in each else posixpath.basename(path), each) for each in patterns)


def step_of(path: str) -> int | None:
    """Return the step in the name of a checkpoint; None without one."""
    found = _STEP.findall(posixpath.basename(path).lower())
    return int(found[-1][0] or found[-1][1]) if found else None


def is_alike(path: str, other: str) -> bool:
    """Return whether the names of two checkpoints differ only in numbers."""
    return _NUMBER.sub("", path) == _NUMBER.sub("", other)


def has_optimizer(kind: Format | None, files: Iterable[str]) -> bool | None:
    """Return whether the files of a checkpoint include the optimizer; None if its format does not show it."""
    if kind is not None and any(_OPTIMIZER.search(name) for name in files):
        return True
    return False if kind is not None and kind.name in WITH_OPTIMIZER else None


def is_later(tag: str, named: str) -> bool:
    """Return whether a folder is later than the one that a tracker names, by their numbers."""
    return bool(_numbers(tag) and _numbers(named)) and _numbers(tag) > _numbers(named)


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
