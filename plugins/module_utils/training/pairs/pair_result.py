# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The result of a measurement of all pairs of nodes: its records, its tables, and whether it stops a later run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

from . import pair_cards, pair_findings
from .pair_findings import PairFinding, Record

NAME = re.compile(r"[A-Za-z0-9_.:@-]{1,64}", re.ASCII)
STALLED = re.compile(r"StalledPairError: the pair (\S+) and (\S+) moved no data for ([\d.]+) s")
MPI, NCCL = "MPI messages", "NCCL all_reduce"
SHOWN = 10


def parsed(text: str, nodes: Iterable[str]) -> tuple[list[dict[str, Any]], int]:
    """Return the records of the nodes in the lines of a text, and the number of malformed lines."""
    lines, known = [line for line in text.splitlines() if line.strip()], set(nodes)
    records = [record for record in (_record(line, known) for line in lines) if record is not None]
    return records, len(lines) - len(records)


def _record(line: str, nodes: set[str]) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        node, peer = str(found["node"]), str(found["peer"])
        record = {
            "node": node,
            "peer": peer,
            "gbits": [_positive(rate) for rate in found["gbits"]],
            "latency_us": None if found["latency_us"] is None else _positive(found["latency_us"]),
            "carried": [_name(device) for device in found["carried"]],
            "devices": {_name(device): _device(about) for device, about in found["devices"].items()},
        }
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return record if {node, peer} <= nodes and node != peer and record["gbits"] else None


def _positive(value: Any) -> float:
    number = float(value)
    if isinstance(value, (bool, str)) or not math.isfinite(number) or number < 0:
        raise ValueError(value)
    return number


def _name(value: Any) -> str:
    if not NAME.fullmatch(value):
        raise ValueError(value)
    return str(value)


def _device(about: Mapping[str, Any]) -> dict[str, Any]:
    identifier = _name(about["id"]) if about["id"] else ""
    return {
        "id": identifier,
        "rdma": bool(about["rdma"]),
        "gbits": _positive(about["gbits"]),
        "mtu": int(_positive(about["mtu"])),
    }


def result(check: Mapping[str, Any], text: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result; ``check`` contains name, nodes, transport, nccl, asked, least and goal."""
    nodes = [str(node) for node in check["nodes"]]
    records, malformed = parsed(text, nodes)
    found = pair_findings.findings(records, check["asked"], check["least"], check["goal"])
    measured = pair_findings.pairs(records)
    return {
        "name": check["name"],
        "nodes": nodes,
        "transport": check["transport"],
        "started": job.get("started"),
        "ended": job.get("ended"),
        "tool": f"{NCCL} {check['nccl']}" if check["nccl"] else MPI,
        "least": check["least"],
        "expected_gbits": check["goal"] or None,
        "usual_gbits": pair_findings.reference(measured) or None,
        "pairs": sorted(measured, key=lambda pair: pair["gbits"]),
        "cards": [_card(node, records) for node in nodes],
        "findings": [*found, *_gaps(nodes, [pair["nodes"] for pair in measured], job)],
        "malformed": malformed,
    }


def _card(node: str, records: Sequence[Record]) -> dict[str, Any]:
    """Return the devices of a node that carried its traffic, with the expectation, and its bandwidth."""
    own = [record for record in records if record["node"] == node]
    devices = {name: about for record in own for name, about in record["devices"].items() if name in record["carried"]}
    limits = [pair_cards.expected(about) for about in devices.values()]
    known = [limit for limit in limits if limit.gbits]
    rates = [pair["gbits"] for pair in pair_findings.pairs(records) if node in pair["nodes"]]
    return {
        "node": node,
        "device": ", ".join(devices) or None,
        "card": ", ".join(dict.fromkeys(map(pair_cards.name, devices.values()))) or None,
        "link_gbits": min((about["gbits"] for about in devices.values() if about["gbits"]), default=None),
        "expected_gbits": min((limit.gbits or 0.0 for limit in known), default=None),
        "source": (known or limits)[0].source if limits else "not established: no counter of a device grew",
        "best_gbits": max(rates, default=None),
        "median_gbits": median(rates) if rates else None,
        "least_gbits": min(rates, default=None),
    }


def _gaps(nodes: Sequence[str], measured: Sequence[Sequence[str]], job: Mapping[str, Any]) -> list[PairFinding]:
    """Return the pairs that stalled, or else those without a measurement."""
    output = "\n".join([str(job.get("why") or ""), *map(str, job.get("last_lines") or ())])
    stalled = set(STALLED.findall(output))
    if stalled:
        return [_stalled(*words) for words in sorted(stalled)]
    done = {tuple(sorted(pair)) for pair in measured}
    missing = [pair for pair in combinations(nodes, 2) if tuple(sorted(pair)) not in done]
    if not missing:
        return []
    first, more = " and ".join(missing[0]), f" and {len(missing) - 1} more pairs" if len(missing) > 1 else ""
    text = f"{first}{more} were not measured: {job.get('why') or 'the measurement did not finish'}."
    return [{"rule": "not-measured", "nodes": sorted({node for pair in missing for node in pair}), "text": text}]


def _stalled(first: str, second: str, seconds: str) -> PairFinding:
    text = f"{first} and {second} moved no data for {seconds} s, so the measurement was stopped"
    remedy = (
        "Check that the MTU is the same on their cards, the switch and the path, and that no firewall drops packets."
    )
    return {"rule": "stalled-pair", "nodes": [first, second], "text": f"{text}. {remedy}"}


def lines(check: Mapping[str, Any]) -> list[str]:
    """Return the result as lines for a terminal."""
    head = (
        f"{len(check['pairs'])} pairs of {len(check['nodes'])} nodes by {check['transport']}, {check['tool']}, Gbit/s"
    )
    rows = [f"{'Node':<20} {'Device':<12} {'Card':<16} {'Best':>7} {'Median':>7} {'Least':>7} {'Expected':>8}"]
    rows += [_row(card) for card in check["cards"]]
    slowest = [f"{' - '.join(pair['nodes'])}: {number(pair['gbits'])}" for pair in check["pairs"][:SHOWN]]
    return [head, *rows, "Slowest pairs: " + (", ".join(slowest) or "none"), *summaries(check)]


def summaries(check: Mapping[str, Any]) -> list[str]:
    """Return the findings as sentences, or the sentence that there are none."""
    return [f"{each['rule']}: {each['text']}" for each in check["findings"]] or ["No findings."]


def _row(card: Mapping[str, Any]) -> str:
    best, middle, least, expected = (number(card[f"{key}_gbits"]) for key in ("best", "median", "least", "expected"))
    device, name = card["device"] or "-", card["card"] or "-"
    return f"{card['node']:<20} {device:<12} {name:<16} {best:>7} {middle:>7} {least:>7} {expected:>8}"


def number(value: float | None) -> str:
    """Return a bandwidth in words, or a dash if it is unknown."""
    return "-" if value is None else pair_findings.number(value)


def stops(checks: Iterable[Mapping[str, Any]], nodes: Sequence[str], now: float, seconds: float) -> list[str]:
    """Return the findings about the nodes in the last recent check of each transport, in sentences."""
    newest: dict[str, Mapping[str, Any]] = {}
    for check in sorted(checks, key=lambda each: float(each.get("ended") or 0)):
        is_recent = now - float(check.get("ended") or 0) <= seconds
        if is_recent and len(set(nodes) & set(check["nodes"])) > 1:
            newest[str(check["transport"])] = check
    concerned = [(check, each) for check in newest.values() for each in check["findings"]]
    return [
        f"{check['name']}: {each['text']}"
        for check, each in concerned
        if set(each["nodes"]) <= set(nodes) or each["rule"] == "not-measured"
    ]
