# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Read the results of training runs and the timelines of vMotion tests from their folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Refused

TIMELINE = "timeline.json"
# The keys that a run needs for a row in a table.
NEEDED = ("name", "nodes", "gpus", "transport", "images_per_sec")
NEEDED_OF_A_CHECK = ("name", "nodes", "transport", "tool", "ended", "pairs", "cards", "findings")
REMEDY = "remove the file or restore the one that role training wrote"


def runs(folder: Path, names: str) -> list[dict[str, Any]]:
    """Return the results in a folder whose names match a pattern, in the order of their names."""
    return [
        _complete(path, "read the result of a training run", NEEDED) for path in _files(folder.glob(f"{names}.json"))
    ]


def fabric_checks(folder: Path) -> list[dict[str, Any]]:
    """Return the results of bandwidth measurements below a folder, in the order of their ends."""
    tried = "read the result of a bandwidth measurement"
    checks = [_complete(path, tried, NEEDED_OF_A_CHECK) for path in _files(folder.glob("*/result.json"))]
    return sorted(checks, key=lambda check: float(check["ended"] or 0))


def timelines(folder: Path) -> list[dict[str, Any]]:
    """Return the timelines of all tests below a folder, in the order of their paths."""
    return [_read(path, "read the timeline of a vMotion test") for path in _files(folder.rglob(TIMELINE))]


def _files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file() and not path.name.startswith("."))


def _complete(path: Path, tried: str, needed: Sequence[str]) -> dict[str, Any]:
    found = _read(path, tried)
    lacking = [key for key in needed if key not in found]
    if lacking:
        raise Refused(str(path), tried, f"it has no {', '.join(lacking)}", REMEDY)
    return found


def _read(path: Path, tried: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(str(path), tried, str(error), REMEDY) from error
    if not isinstance(content, Mapping):
        raise Refused(str(path), tried, "it does not contain a JSON object", REMEDY)
    return dict(content)
