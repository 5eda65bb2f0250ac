"""Which rank the others wait for, from the Flight Recorders of PyTorch and from NCCL's RAS service; pure.

RAS knows the counts of all ranks, also without PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.findings import listed
from ..core.json_values import mapping
from ..core.names import printable
from . import recorders
from .recorders import MOST_RANKS

# The lines of `verbose status`: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
_COUNTS = re.compile(r"Communicator ranks have different (?:collective|(\w+)) operation counts")
_LAUNCHED = re.compile(r"(\d+) ranks? ha(?:ve|s) launched up to operation (\d+)")
_RANK = re.compile(r"Rank (\d+) -- GPU (\S+) managed by process (\d+) on node (\S+)")
_MISSING = re.compile(r"The missing ranks?: ([\d, ]+)")
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPU (\S+)")
_DEAD = "considered dead"


def of_nodes(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return who waits for whom, from the answers of nodes."""
    dumps = {
        int(rank): dump
        for node in found.values()
        for rank, dump in mapping(node.get("dumps")).items()
        if str(rank).isdecimal() and isinstance(dump, Mapping)
    }
    return sentences(dumps, [str(node["ras"]) for node in found.values() if node.get("ras")])


def sentences(dumps: Mapping[int, Mapping[str, Any]], ras: Sequence[str]) -> list[str]:
    """Return who waits for whom: ``dumps`` are the recorders by rank, ``ras`` the answers of NCCL on nodes."""
    found = [*recorders.sentences(dumps), *(sentence for text in ras for sentence in of_ras(text))]
    return list(dict.fromkeys(found))


def of_ras(text: str) -> Iterator[str]:
    """Yield a sentence for each error and each difference that NCCL's RAS service reports."""
    lines = [printable(line.strip()) for line in text.splitlines()]
    for number, line in enumerate(lines):
        counts = _COUNTS.search(line)
        if counts:
            yield _of_counts(counts[1] or "collective", lines[number + 1 :])
        elif _DEAD in line:
            yield f"NCCL considers {_processes(lines[number + 1 :])} dead."
        elif line == "INCOMPLETE":
            yield f"{_processes(lines[number + 2 :])} does not answer NCCL."
        elif match := _MISSING.search(line):
            yield f"NCCL has no data of rank {match[1].strip()}."


def _processes(lines: Sequence[str]) -> str:
    found = []
    for line in lines:
        match = _PROCESS.search(line)
        if not match:
            break
        found.append(f"process {match[1]} on {match[2]} (GPU {match[3]})")
    return listed(found) or "a process"


def _of_counts(operation: str, lines: Sequence[str]) -> str:
    """Return who is behind: RAS names the ranks of the smaller group, after their line."""
    counts: list[tuple[int, int]] = []
    named: dict[int, list[str]] = {}
    for line in lines:
        launched, rank = _LAUNCHED.search(line), _RANK.search(line)
        if launched:
            counts.append((int(launched[2]), int(launched[1])))
        elif rank and counts:
            named.setdefault(counts[-1][0], []).append(f"rank {rank[1]} on {rank[4]}")
        else:
            break
    if not counts:
        return "The ranks have launched different numbers of operations."
    last = max(number for number, _ranks_there in counts)
    behind = [f"{_of_count(named.get(number), many)} at number {number}" for number, many in counts if number < last]
    ahead = "".join(_of_count(named.get(number), many) for number, many in counts if number == last)
    return f"{ahead} launched {operation} operation {last}, and wait for {' and '.join(behind)}."


def _of_count(names: Sequence[str] | None, many: int) -> str:
    return listed(names, MOST_RANKS) if names else f"{many} other ranks" if many > 1 else "one other rank"
