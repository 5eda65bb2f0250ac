# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The assumptions of the collection with the results of their checks on a site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..recording.recording import Recording
from .assumptions import ASSUMPTIONS

PROVEN, REFUTED, OPEN = "proven", "refuted", "open"


def judged(recording: Recording) -> list[dict[str, Any]]:
    """Return each assumption with the result of its check."""
    words = {True: PROVEN, False: REFUTED, None: OPEN}
    checked = [(assumption, *assumption.check(recording)) for assumption in ASSUMPTIONS]
    return [
        {"name": assumption.name, "text": assumption.text, "status": words[is_confirmed], "said": result}
        for assumption, is_confirmed, result in checked
    ]


def lines(checked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the assumptions as lines of text, refuted ones first."""
    order = (REFUTED, PROVEN, OPEN)
    listed = sorted(checked, key=lambda assumption: order.index(assumption["status"]))
    return [f"{assumption['status']:<8} {assumption['text']} ({assumption['said']})" for assumption in listed]
