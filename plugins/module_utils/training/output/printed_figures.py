"""The figures that a job prints: the rate of a benchmark, and the connections in NCCL's log."""

from __future__ import annotations

import re
from typing import TypedDict

from .log import parse

# Other networks of NCCL are plugins: NET/UCX, NET/OFI, NET/AWS Libfabric, and NET/IBext, which uses InfiniBand too.
_NETWORK = r"IB|Socket|[A-Za-z][\w-]*(?: [A-Z]\w*)?"
_VIA = re.compile(rf"NCCL INFO.*\bvia (?:direct )?(NET/(?:{_NETWORK})|P2P|SHM|direct shared memory)")
_USING = re.compile(rf"NCCL INFO (?:NET/(?P<plugin>IB|Socket) : Using|Using network (?P<network>{_NETWORK}))")


class Figures(TypedDict):
    """The images/s of all ranks, the connections of the ranks, and whether the output contains messages of NCCL."""

    total: float | None
    ways: list[str]
    has_nccl: bool


def figures(output: str) -> Figures:
    """Return the figures in the complete output of a job."""
    # Every rank prints the same total.
    total = max(parse(output).totals.values(), default=None)
    return {"total": total, "ways": sorted(_ways(output)), "has_nccl": "NCCL INFO" in output}


def _ways(output: str) -> set[str]:
    """Return the connections of the ranks between nodes; those within nodes only if there are no others."""
    between = {match[1] for match in _VIA.finditer(output)}
    across = {way for way in between if way.startswith("NET/")}
    if across or between:
        return across or between
    return {f"NET/{match['plugin'] or match['network']}" for match in _USING.finditer(output)}
