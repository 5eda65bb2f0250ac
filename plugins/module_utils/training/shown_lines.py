# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The last lines of the output of a job for its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .mpi_output import lines_of

SHOWN, LONGEST = 20, 300


def output_of(views: Mapping[str, Any]) -> str:
    """Return the end of the output, from what a watch keeps of each node; only the launcher has one."""
    texts = [view["output"] for view in views.values() if isinstance(view, Mapping) and "output" in view]
    valid = [text for text in texts if isinstance(text, list) and len(text) > 1 and isinstance(text[1], str)]
    return str(valid[0][1]) if valid else ""


def last_lines(output: str) -> list[str]:
    """Return the last lines, each with its rank."""
    lines = [(line.rank, _last_state(line.text)) for line in lines_of(output)[-SHOWN:]]
    return [_short(text if rank is None else f"rank {rank}: {text}") for rank, text in lines]


def _last_state(text: str) -> str:
    """Return the text that a terminal would show of a line: a progress bar begins the line again and again."""
    states = [state for state in text.split("\r") if state.strip()]
    return states[-1].rstrip() if states else ""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
