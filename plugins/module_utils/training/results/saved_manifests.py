"""The manifests of runs on this machine, and the checksums of their outputs."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from ... import runner
from ...core import regular_file
from ...errors import CollectionError, Failed, NotFound, Refused
from . import manifest as manifests
from .report_files import PRIVATE, ReportFiles

BLOCK = 1 << 20


def read(folder: Path) -> manifests.Manifest:
    path = folder / manifests.FILE
    try:
        text = regular_file.content(str(path), manifests.MOST_BYTES).decode("utf-8")
    except FileNotFoundError as error:
        raise NotFound(str(path), "read the manifest of a training run", "there is no such file") from error
    except (OSError, ValueError) as error:
        raise Failed(str(path), "read the manifest of a training run", str(error)) from error
    return manifests.parsed(text, str(folder.name))


def write_manifest(
    folder: str,
    manifest: manifests.Manifest | None = None,
    end: manifests.RunEnd | None = None,
    outputs: str = "",
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the manifest of a run that starts, or complete the existing one; only its owner can read it.

    ``end`` has facts about the end of the run. ``outputs`` is a folder, of whose files the manifest gets the checksums,
    or only of those with the given ``names``.
    """
    known: manifests.RunEnd = {**(end or {})}
    if outputs:
        known["outputs"] = output_files(Path(outputs), set(names))
    content = _new_content(Path(folder), manifest, known)
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    files = ReportFiles(Path(folder), {manifests.FILE: text}, PRIVATE)
    return {**runner.converge_one(runner.OfProgram(), files), "manifest": content}


def _new_content(folder: Path, given: manifests.Manifest | None, end: manifests.RunEnd) -> manifests.Manifest:
    faults = manifests.faults(given) if given is not None else ""
    if faults:
        raise Refused(str(folder), "write the manifest of a training run", faults)
    content = read(folder) if given is None else given.copy()
    return manifests.ended(content, end) if end else content


def read_all(results: Path) -> tuple[list[manifests.Manifest], list[str]]:
    """Return the manifests below a folder of results, and a sentence for each that cannot be read."""
    tried = [_attempt(path.parent) for path in sorted(results.glob(f"*/{manifests.FILE}"))]
    return [each for each in tried if isinstance(each, dict)], [each for each in tried if isinstance(each, str)]


def _attempt(folder: Path) -> manifests.Manifest | str:
    try:
        return read(folder)
    except CollectionError as error:
        return str(error)


def output_files(folder: Path, names: Set[str]) -> list[dict[str, object]]:
    """Return the path, size and checksum of each file in a folder, or of those with the given names."""
    paths = [(path, path.relative_to(folder).as_posix()) for path in sorted(_files(folder))]
    return [
        {"path": name, "bytes": path.stat().st_size, "sha256": _checksum(path)}
        for path, name in paths
        if not names or name in names
    ]


def _files(folder: Path) -> Iterator[Path]:
    for above, _folders, names in os.walk(folder):
        yield from (path for path in (Path(above, name) for name in names) if path.is_file() and not path.is_symlink())


def _checksum(path: Path) -> str:
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            sha256.update(block)
    return sha256.hexdigest()
