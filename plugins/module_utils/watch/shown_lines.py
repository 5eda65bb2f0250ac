"""The lines of the output of a job, for its page and for the screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .mpi_output import OutputLine, lines_of

SHOWN, LONGEST = 20, 300
# The place of the packages of an environment, whose name is a checksum.
_PACKAGES = re.compile(r"/[^\s\"':,()]{1,200}/lib(?:64)?/python[\d.]{1,9}/site-packages/")
_ENDED = re.compile(r"\bSIGTERM\b|\bsignal:? 15\b|killed by signal: Terminated")


def last_lines(output: str) -> list[str]:
    return without_signals(lines_of(output))[-SHOWN:]


def without_signals(lines: Sequence[OutputLine]) -> list[str]:
    """Return lines with their ranks; of those about SIGTERM, which every process of a stopped job prints, the first."""
    shown: list[str] = []
    left_out = 0
    for line in lines:
        left_out += (is_ended := bool(_ENDED.search(line.text)))
        if not is_ended or left_out == 1:
            shown.append(line_of(line))
    return [*shown, f"and {left_out - 1} more lines about SIGTERM"] if left_out > 1 else shown


def short_paths(text: str) -> str:
    """Return a text in which paths of installed packages begin with the package."""
    return _PACKAGES.sub(".../", text)


def whole_line(line: OutputLine) -> str:
    """Return a line with its rank, as a terminal would show it."""
    state = _last_state(line.text)
    return state if line.rank is None else f"rank {line.rank}: {state}"


def line_of(line: OutputLine) -> str:
    """Return a line with its rank, as long as a screen shows it."""
    text = short_paths(whole_line(line))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _last_state(text: str) -> str:
    """Return the text that a terminal would show of a line: a progress bar rewrites its line."""
    states = [state for state in text.split("\r") if state.strip()]
    return states[-1].rstrip() if states else ""
