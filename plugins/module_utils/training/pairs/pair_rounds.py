"""The rounds in which all pairs of nodes are measured, disjoint pairs at a time: n - 1 rounds for an even number n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, List, Tuple, TypedDict

Round = List[Tuple[int, int]]


class PairPlan(TypedDict):
    """The rounds as text and their number, and the devices of each node that the traffic should use."""

    rounds: str
    count: int
    devices: list[list[str]]


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


def plan(nodes: Sequence[Mapping[str, object]], transport: str, network: str = "") -> PairPlan:
    """Return the plan for nodes with ``interface`` and ``hcas``; a network does not determine a device."""
    every = rounds(len(nodes))
    return {
        "rounds": text(every),
        "count": len(every),
        "devices": [_devices(node, transport, network) for node in nodes],
    }


def _devices(node: Mapping[str, Any], transport: str, network: str) -> list[str]:
    interface = [str(node["interface"])] if node.get("interface") else []
    if transport != "rdma":
        return [] if network else interface
    hcas = list(node.get("hcas") or ())
    # Soft-RoCE sends through a network interface and has no counter of bytes.
    soft = interface if any(hca.get("driver") is None for hca in hcas) else []
    return [*(str(hca["name"]) for hca in hcas), *soft]
