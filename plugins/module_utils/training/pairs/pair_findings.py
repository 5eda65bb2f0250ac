# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Findings of a measurement of all pairs of nodes: slow nodes, slow pairs, stalled pairs and wrong cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median, median_high
from typing import Any, TypedDict

from . import pair_cards

Record = Mapping[str, Any]


class Pair(TypedDict):
    """The bandwidth between two nodes: that of the slower direction, and what each node sent."""

    nodes: list[str]
    gbits: float
    sent: dict[str, float]
    latency_us: float | None


class PairFinding(TypedDict):
    """A finding: its rule, the nodes concerned and a sentence."""

    rule: str
    nodes: list[str]
    text: str


def number(value: float) -> str:
    """Return a bandwidth with two decimals, or with three digits below 1 Gbit/s."""
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def pairs(records: Sequence[Record]) -> list[Pair]:
    """Return the measured pairs, from the records of both of their nodes."""
    both: dict[tuple[str, ...], dict[str, Record]] = {}
    for record in records:
        key = tuple(sorted((str(record["node"]), str(record["peer"]))))
        both.setdefault(key, {})[str(record["node"])] = record
    return [_pair(key, ends) for key, ends in sorted(both.items()) if len(ends) == 2]


def _pair(key: tuple[str, ...], ends: Mapping[str, Record]) -> Pair:
    sent = {node: float(median(record["gbits"])) for node, record in ends.items()}
    latencies = [float(record["latency_us"]) for record in ends.values() if record.get("latency_us") is not None]
    return {"nodes": list(key), "gbits": min(sent.values()), "sent": sent, "latency_us": max(latencies, default=None)}


def reference(measured: Sequence[Pair]) -> float:
    """Return the bandwidth to compare with: the median of the best pair of each node.

    A slow node slows two of three pairs, so the median of the pairs would be slow; the other nodes still have a good
    pair. With two nodes it is the only pair.
    """
    best: dict[str, float] = {}
    for pair in measured:
        for node in pair["nodes"]:
            best[node] = max(best.get(node, 0.0), pair["gbits"])
    return median_high(best.values()) if best else 0.0


def findings(
    records: Sequence[Record], requested: Mapping[str, Sequence[str]], least: float, goal: float
) -> list[PairFinding]:
    """Return the findings; ``requested``: node -> its devices for the traffic; ``goal`` in Gbit/s, 0 for none."""
    measured = pairs(records)
    floor = least * reference(measured)
    slow = [pair for pair in measured if pair["gbits"] < floor]
    nodes = _slow_nodes(measured, slow)
    found = [_slow_node(node, measured, floor / least) for node in nodes]
    found += [_slow_pair(pair, floor / least) for pair in slow if not set(nodes) & set(pair["nodes"])]
    found += _wrong_cards(records, requested)
    found += _below(measured, records, goal, least, {node for each in found for node in each["nodes"]})
    return found


def _slow_nodes(measured: Sequence[Pair], slow: Sequence[Pair]) -> list[str]:
    """Return the nodes with two pairs or more that are all slow."""
    of_node: dict[str, list[Pair]] = {}
    for pair in measured:
        for node in pair["nodes"]:
            of_node.setdefault(node, []).append(pair)
    return [node for node, own in sorted(of_node.items()) if len(own) > 1 and all(pair in slow for pair in own)]


def _slow_node(node: str, measured: Sequence[Pair], usual: float) -> PairFinding:
    own = [pair for pair in measured if node in pair["nodes"]]
    best = max(pair["gbits"] for pair in own)
    out = float(median(pair["sent"][node] for pair in own))
    into = float(median(gbits for pair in own for sender, gbits in pair["sent"].items() if sender != node))
    way = f"it sends {number(out)} and receives {number(into)} Gbit/s"
    text = f"{node} is slow with every other node: at most {number(best)} of {number(usual)} Gbit/s; {way}"
    return {"rule": "slow-node", "nodes": [node], "text": f"{text}. Check its card, link, MTU and ESXi host."}


def _slow_pair(pair: Pair, usual: float) -> PairFinding:
    first, second = pair["nodes"]
    ways = ", ".join(f"{number(gbits)} from {node}" for node, gbits in sorted(pair["sent"].items()))
    text = f"{first} and {second} are slow only with each other: {ways}, of {number(usual)} Gbit/s"
    return {"rule": "slow-pair", "nodes": [first, second], "text": f"{text}. Check the path between their hosts."}


def _wrong_cards(records: Sequence[Record], requested: Mapping[str, Sequence[str]]) -> Iterator[PairFinding]:
    """Return the nodes that sent through other devices to a peer, if the devices are known."""
    for node, desired in requested.items():
        carried = [set(record["carried"]) for record in records if record["node"] == node and record["carried"]]
        wrong = sorted(set().union(*(devices for devices in carried if not devices & set(desired))))
        if desired and wrong:
            text = f"{node} sends through {', '.join(wrong)} and not through {', '.join(desired)}"
            yield {
                "rule": "wrong-card",
                "nodes": [node],
                "text": f"{text}. Check the routes and the transport settings.",
            }


def _below(
    measured: Sequence[Pair], records: Sequence[Record], goal: float, least: float, named: set[str]
) -> Iterator[PairFinding]:
    """Return the pairs below the goal, or below the share of what both cards can carry; others are named already."""
    for pair in measured:
        limits = [goal] if goal else [_limit(records, node, pair) for node in pair["nodes"]]
        floor = goal or least * min((limit for limit in limits if limit), default=0.0)
        if pair["gbits"] < floor and not named & set(pair["nodes"]):
            first, second = pair["nodes"]
            text = f"{first} and {second} reach {number(pair['gbits'])} Gbit/s, less than the expected {number(floor)}"
            yield {"rule": "below-expected", "nodes": [first, second], "text": f"{text}. Check cards, links and MTU."}


def _limit(records: Sequence[Record], node: str, pair: Pair) -> float:
    """Return what the device that carried the traffic of a pair can carry; 0 if that is not established."""
    own = [each for each in records if each["node"] == node and each["peer"] in pair["nodes"]]
    limits = [
        pair_cards.expected(device).gbits or 0.0
        for each in own
        for name, device in each["devices"].items()
        if name in each["carried"]
    ]
    return min((limit for limit in limits if limit), default=0.0)
