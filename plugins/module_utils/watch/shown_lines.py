# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The lines of the output of a job, for its page and for the screen."""

from __future__ import annotations

from .mpi_output import OutputLine, lines_of

SHOWN, LONGEST = 20, 300


def last_lines(output: str) -> list[str]:
    """Return the last lines, each with its rank."""
    return [line_of(line) for line in lines_of(output)[-SHOWN:]]


def line_of(line: OutputLine) -> str:
    """Return a line with its rank, as long as a screen shows it."""
    state = _last_state(line.text)
    text = state if line.rank is None else f"rank {line.rank}: {state}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _last_state(text: str) -> str:
    """Return the text that a terminal would show of a line: a progress bar rewrites its line."""
    states = [state for state in text.split("\r") if state.strip()]
    return states[-1].rstrip() if states else ""
