# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The rounds in which all pairs of nodes are measured, disjoint pairs at a time: n - 1 rounds for an even number n."""

from __future__ import annotations

from typing import List, Tuple

Round = List[Tuple[int, int]]


def rounds(nodes: int) -> list[Round]:
    """Return the rounds, each with pairs of disjoint numbers below ``nodes``; every pair occurs once.

    The circle method: one node stays, the others move on by one place in each round. With an odd number of nodes, the
    partner of a node that does not exist pauses, so there are as many rounds as nodes.
    """
    places = list(range(nodes + nodes % 2))
    half, every = len(places) // 2, []
    for _round in range(len(places) - 1):
        facing = zip(places[:half], reversed(places[half:]))
        every.append([(min(pair), max(pair)) for pair in facing if max(pair) < nodes])
        places = [places[0], places[-1], *places[1:-1]]
    return every


def text(every: list[Round]) -> str:
    """Return the rounds as one word of a command line, such as ``0-1,2-3/0-2,1-3``."""
    return "/".join(",".join(f"{first}-{second}" for first, second in pairs) for pairs in every)
