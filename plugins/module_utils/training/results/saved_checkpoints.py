"""The checkpoints of a run on this machine, and why one cannot be used."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from ...errors import CollectionError, Refused
from . import attempts, checkpoint_reader, saved_manifests
from .checkpoint import OutputFile, candidates, choose
from .checkpoint_faults import fault
from .manifest import Manifest, number


def newest_checkpoint(name: str, folder: str, patterns: Sequence[str], required: bool) -> dict[str, object]:
    """Return the path of the newest complete checkpoint of a run, with a warning for each newer one that is torn.

    Without a complete checkpoint, the path is empty if none is required. ``has_files`` is whether there are outputs.
    ``left_out`` has a pattern for each file that the run did not have at its end: a checkpoint that the program had
    removed by then, or a part of a copy that was killed. ``restart`` has what a verdict on the restart needs.
    """
    outputs = Path(folder)
    files, manifest = checkpoint_reader.files_in(outputs), _manifest(outputs)
    current = _current(files, manifest)
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


def unusable_checkpoint(name: str, folder: str, patterns: Sequence[str]) -> str:
    """Return why a run cannot resume from the newest checkpoint of this one; empty if it can, or without any."""
    outputs = Path(folder)
    manifest = _manifest(outputs)
    found = candidates(_current(checkpoint_reader.files_in(outputs), manifest), patterns)
    try:
        torn = choose(name, found, lambda file: fault(outputs, file, _ranks(manifest, file))).torn if found else ()
    except Refused as refusal:
        return str(refusal)
    return " ".join(f"No run can resume from the checkpoint {path}: {why}." for path, why in torn)


def _current(files: Sequence[OutputFile], manifest: Manifest) -> list[OutputFile]:
    """Return the files that the run had at its end, if its manifest has them."""
    kept = _kept(manifest)
    return [file for file in files if not kept or file.path in kept]


def _content(outputs: Path, chosen: OutputFile, files: Sequence[OutputFile]) -> dict[str, object]:
    """Return the facts about a checkpoint from which a run starts: its step, if known, its files and its optimizer."""
    facts = checkpoint_reader.facts_of(outputs, chosen, files)
    content = saved_manifests.output_files(outputs, set(checkpoint_reader.names_of(chosen, files)))
    known = {key: facts[key] for key in ("path", "step", "optimizer")}
    return {**known, "modified": chosen.modified, "files": content}


def _manifest(outputs: Path) -> Manifest:
    """Return the manifest of a run; empty if it has none."""
    try:
        return saved_manifests.read(outputs.parent)
    except CollectionError:
        return {}


def _ranks(manifest: Manifest, file: OutputFile) -> int:
    """Return the number of ranks that wrote a checkpoint; 0 if it is unknown, as that of an earlier run."""
    began, each = number(manifest.get("started")), number(manifest.get("ranks_per_node"))
    return 0 if began is None or each is None or file.modified < began else len(manifest["nodes"]) * int(each)


def _kept(manifest: Manifest) -> set[str]:
    """Return the paths of the outputs at the end of the run, from its manifest; empty if it has none."""
    listed = manifest.get("end", {}).get("outputs")
    return {str(each.get("path")) for each in listed if isinstance(each, dict)} if isinstance(listed, list) else set()
