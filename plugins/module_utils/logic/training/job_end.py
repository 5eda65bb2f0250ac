# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The cause of the end of an mpirun job: rank, node and sentence, from the last lines of its output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Optional, Tuple

from .mpi_output import Line, lines_of

SHOWN_LINES = 10
# Sentence, rank and node.
Found = Optional[Tuple[str, Optional[int], Optional[str]]]
_ERROR = re.compile(r"^\s*(?P<kind>(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit))(?:: (?P<text>.*))?$")
_ALONE = re.compile(
    r"unable to complete a TCP connection\s+to another process:\s+Local host:\s+(\S+)\s+Remote host:\s+(\S+)"
)
_NO_SPACE = re.compile(r"No space left on device|ENOSPC")


@dataclass(frozen=True)
class Cause:
    """The cause of the end of a job; rank and node are None where the output does not name them."""

    sentence: str
    rank: int | None
    node: str | None
    last_lines: tuple[str, ...]


def cause_of(output: str, exit_code: int | None, ranks: Sequence[str]) -> Cause:
    """The cause, from the end of the output; ``ranks`` is the node of each rank."""
    lines = lines_of(output)
    text = "\n".join(line.text for line in lines)
    sentence, rank, node = _found(lines, text, ranks) or (_by_code(exit_code), None, None)
    return Cause(sentence, rank, node, tuple(map(str, lines[-SHOWN_LINES:])))


def _found(lines: Sequence[Line], text: str, ranks: Sequence[str]) -> Found:
    for look in LOOKS:
        found = look(text, lines, ranks)
        if found is not None:
            return found
    return None


def _by_error(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    """A Python error of a rank, which is what made mpirun end the others."""
    del text
    for line in lines:
        error = _ERROR.match(line.text) if line.stream == "err" else None
        if error and line.rank is not None:
            rank, node = line.rank, _node_of(line.rank, ranks)
            said = error[0].strip()
            what = "found the disk full" if _NO_SPACE.search(said) else "ended"
            return f"rank {rank} on {node or 'an unknown node'} {what}: {said}", rank, node
    return None


def _by_signal(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines, ranks
    found = re.search(
        r"process rank (\d+) with PID (\d+) on\s+node (\S+) exited on\s+signal (\d+)(?: \(([^)]*)\))?", text
    )
    if found is None:
        return None
    name = f" ({found[5]})" if found[5] else ""
    sentence = f"rank {found[1]} on {found[3]} (process {found[2]}) was ended by signal {found[4]}{name}"
    return sentence, int(found[1]), found[3]


def _by_exit(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines
    found = re.search(r"Process name:\s+\[\[\d+,\d+\],(\d+)\]\s+Exit code:\s+(\d+)", text)
    if found is None:
        return None
    rank = int(found[1])
    node = _node_of(rank, ranks)
    return f"rank {rank} on {node or 'an unknown node'} ended with exit code {found[2]}", rank, node


def _by_lost_node(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines
    found = re.search(r"lost communication with a remote daemon.*?Remote daemon:\s+\S+ on node (\S+)", text, re.DOTALL)
    if found:
        return f"the launcher lost the node {found[1]}", _first_rank(found[1], ranks), found[1]
    return None


def _by_ssh(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines
    found = re.search(
        r"(?:ssh: (?:connect to host|Could not resolve hostname) (?P<node>[^\s:]+)[^\n]*)"
        r"|(?:(?P<login>\S+): Permission denied[^\n]*)|Host key verification failed[^\n]*",
        text,
    )
    if found is None:
        return None
    node = found["node"] or (found["login"].rpartition("@")[2] if found["login"] else None)
    where = f"the node {node}" if node else "a node"
    return f"the launcher could not reach {where}: {found[0].strip()}", _first_rank(node, ranks), node


def _by_executable(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines
    words = r"could not (?:find an|access\s+or execute an) executable:.*?Executable:\s+(\S+)\s+Node:\s+(\S+)"
    found = re.search(words, text, re.DOTALL)
    if found is None:
        return None
    return f"the program {found[1]} cannot be run on {found[2]}", _first_rank(found[2], ranks), found[2]


def _by_slots(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines, ranks
    if re.search(r"not enough slots available", text):
        return "the nodes have fewer slots than ranks were asked for", None, None
    return None


def _by_daemon(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines
    if not re.search(r"unable to reliably start one or more daemons", text):
        return None
    alone = _ALONE.search(text)
    if alone is None:
        return "MPI could not start its daemon on some node", None, None
    sentence = f"MPI's daemon on {alone[1]} could not connect to {alone[2]}: look for a firewall between them"
    return sentence, _first_rank(alone[1], ranks), alone[1]


def _by_full_disk(text: str, lines: Sequence[Line], ranks: Sequence[str]) -> Found:
    del lines, ranks
    return ("a disk is full: No space left on device", None, None) if _NO_SPACE.search(text) else None


# What names the cause best comes first: a rank's own error before mpirun's word for what followed from it.
LOOKS: tuple[Callable[[str, Sequence[Line], Sequence[str]], Found], ...] = (
    _by_error,
    _by_signal,
    _by_exit,
    _by_lost_node,
    _by_ssh,
    _by_executable,
    _by_slots,
    _by_full_disk,
    _by_daemon,
)


def _by_code(code: int | None) -> str:
    if code is None:
        return "mpirun is gone and left no exit code: the launcher was rebooted, or somebody killed it"
    if code < 0:
        return f"mpirun was ended by signal {-code}"
    return f"mpirun ended with exit code {code}"


def _node_of(rank: int, ranks: Sequence[str]) -> str | None:
    return ranks[rank] if rank < len(ranks) else None


def _first_rank(node: str | None, ranks: Sequence[str]) -> int | None:
    return ranks.index(node) if node in ranks else None
