# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The manifests of runs on this machine, and the checksums of their outputs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import CollectionError, Failed, NotFound
from .. import manifest

BLOCK = 1 << 20


def read(folder: Path) -> dict[str, Any]:
    """Return the manifest in the folder of a run."""
    path = folder / manifest.FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(str(path), "read the manifest of a training run", "there is no such file") from error
    except (OSError, ValueError) as error:
        raise Failed(str(path), "read the manifest of a training run", str(error)) from error
    return manifest.parsed(text, str(folder.name))


def read_all(results: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the manifests below a folder of results, and a sentence for each that cannot be read."""
    tried = [_attempt(path.parent) for path in sorted(results.glob(f"*/{manifest.FILE}"))]
    return [each for each in tried if isinstance(each, dict)], [each for each in tried if isinstance(each, str)]


def _attempt(folder: Path) -> dict[str, Any] | str:
    try:
        return read(folder)
    except CollectionError as error:
        return str(error)


def outputs(folder: Path) -> list[dict[str, Any]]:
    """Return the path, size and checksum of each file in a folder."""
    return [
        {"path": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "sha256": _checksum(path)}
        for path in sorted(_files(folder))
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
