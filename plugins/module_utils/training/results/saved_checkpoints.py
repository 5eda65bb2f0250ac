# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The checkpoints of a run on this machine, and why one cannot be used."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core import regular_file
from ...errors import CollectionError, Refused
from . import attempts, saved_manifests
from .checkpoint import OutputFile, candidates, choose, has_optimizer, step_of
from .checkpoint_faults import fault
from .manifest import number

TRAINER_STATE = "trainer_state.json"


def newest_checkpoint(name: str, folder: str, patterns: Sequence[str], required: bool) -> dict[str, Any]:
    """Return the path of the newest complete checkpoint of a run, with a warning for each newer one that is torn.

    Without a complete checkpoint, the path is empty if none is required. ``has_files`` is whether there are outputs.
    ``left_out`` has a pattern for each file that the run did not have at its end: a checkpoint that the program had
    removed by then, or a part of a copy that was killed. ``restart`` has what a verdict on the restart needs.
    """
    outputs = Path(folder)
    files, manifest = _files(outputs), _manifest(outputs)
    kept = _kept(manifest)
    current = [file for file in files if not kept or file.path in kept]
    left_out = [f"/{glob.escape(file.path)}" for file in files if file not in current]
    facts = {"has_files": bool(current), "left_out": left_out}
    try:
        found = candidates(current, patterns)
        choice = choose(name, found, lambda file: fault(outputs, file, _ranks(manifest, file)))
    except Refused as refusal:
        if required:
            raise
        return {"path": "", "warnings": [str(refusal)], **facts, "restart": {"path": ""}}
    warnings = [f"the checkpoint {path} is torn ({why}), so {choice.path} is used" for path, why in choice.torn]
    chosen = next(file for file in found if file.path == choice.path)
    restart = {**_content(outputs, chosen, current), "torn": [list(each) for each in choice.torn]}
    why = attempts.changed(restart, manifest)
    warnings += [f"the checkpoint {choice.path} is used, but {why}"] if why else []
    return {"path": choice.path, "warnings": warnings, **facts, "restart": restart}


def _content(outputs: Path, chosen: OutputFile, files: Sequence[OutputFile]) -> dict[str, Any]:
    """Return the facts about a checkpoint from which a run starts: its step, if known, its files and its optimizer."""
    inside = "" if chosen.path == "." else f"{chosen.path}/"
    below = [file.path for file in files if chosen.format and file.path.startswith(inside)]
    names = {*below, *([] if chosen.format else [chosen.path])}
    return {
        "path": chosen.path,
        "modified": chosen.modified,
        "step": _step_in(outputs / chosen.path) or step_of(chosen.path),
        "optimizer": has_optimizer(chosen.format, names),
        "files": saved_manifests.output_files(outputs, names),
    }


def _step_in(folder: Path) -> int | None:
    """Return the step that Hugging Face's Trainer writes into its checkpoints; None without one."""
    try:
        state = regular_file.content(str(folder / TRAINER_STATE), saved_manifests.BLOCK)
        step = number(json.loads(state)["global_step"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return None if step is None else int(step)


def _manifest(outputs: Path) -> dict[str, Any]:
    """Return the manifest of a run; empty if it has none."""
    try:
        return saved_manifests.read(outputs.parent)
    except CollectionError:
        return {}


def _ranks(manifest: Mapping[str, Any], file: OutputFile) -> int:
    """Return the number of ranks that wrote a checkpoint; 0 if it is unknown, as that of an earlier run."""
    began, each = number(manifest.get("started")), number(manifest.get("ranks_per_node"))
    return 0 if began is None or each is None or file.modified < began else len(manifest["nodes"]) * int(each)


def _kept(manifest: Mapping[str, Any]) -> set[str]:
    """Return the paths of the outputs at the end of the run, from its manifest; empty if it has none."""
    listed = manifest.get("end", {}).get("outputs")
    return {str(each.get("path")) for each in listed if isinstance(each, dict)} if isinstance(listed, list) else set()


def _files(folder: Path) -> list[OutputFile]:
    names = [Path(above, name) for above, _folders, each in os.walk(folder) for name in each]
    paths = [path for path in names if path.is_file() and not path.is_symlink()]
    return [OutputFile(path.relative_to(folder).as_posix(), path.stat().st_mtime) for path in paths]
