# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The files that a verdict is told in, as texts by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..training.timeline import timeline
from . import junit
from .vmotion_page import page


def texts(
    name: str,
    records: Iterable[Mapping[str, Any]],
    moves: Sequence[Mapping[str, Any]],
    judged: Mapping[str, Any],
    at: Mapping[str, str] | None,
) -> dict[str, str]:
    """The verdict as JSON and as JUnit XML; with ``at``, where the workers were at first, its timeline too."""
    files = {"verdict.json": json.dumps(judged, indent=2) + "\n", "junit.xml": junit.report(name, judged, moves)}
    if at is not None:
        told = {"name": name, **timeline(records, moves, judged, at)}
        files.update({"timeline.json": json.dumps(told, indent=1) + "\n", "timeline.html": page(told, name)})
    return files
