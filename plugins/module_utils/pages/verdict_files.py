# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The files of a verdict, as texts by name: the verdict itself, and its timeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..training.timeline import timeline
from . import junit
from .vmotion_page import page

VERDICT, TIMELINE = ("verdict.json", "junit.xml"), ("timeline.json", "timeline.html")


def verdict_texts(name: str, moves: Sequence[Mapping[str, Any]], judged: Mapping[str, Any]) -> dict[str, str]:
    """Return the verdict as JSON and as JUnit XML."""
    return dict(zip(VERDICT, (json.dumps(judged, indent=2) + "\n", junit.report(name, judged, moves))))


def timeline_texts(
    name: str,
    records: Iterable[Mapping[str, Any]],
    moves: Sequence[Mapping[str, Any]],
    judged: Mapping[str, Any],
    at: Mapping[str, str],
) -> dict[str, str]:
    """Return the timeline as JSON and as a page; ``at`` is the host of each worker before the first move."""
    content = {"name": name, **timeline(records, moves, judged, at)}
    return dict(zip(TIMELINE, (json.dumps(content, indent=1) + "\n", page(content, name))))
