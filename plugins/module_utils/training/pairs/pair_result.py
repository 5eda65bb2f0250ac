"""The result of a measurement of all pairs of nodes: its records, its tables, and whether it stops a later run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median, median_high
from typing import Any, TypedDict

NAME = re.compile(r"[A-Za-z0-9_.:@-]{1,64}", re.ASCII)
STALLED = re.compile(r"StalledPairError: the pair (\S+) and (\S+) moved no data for ([\d.]+) s")
MPI, NCCL = "MPI messages", "NCCL all_reduce"
SHOWN = 10
Record = Mapping[str, Any]
# Link rates: https://docs.nvidia.com/networking/display/mlnxenv24100700/introduction, for ConnectX-7
# https://docs.nvidia.com/networking/display/MLNXOFEDv561033/Release+Notes. Identifiers: the drivers mlx5_core, vmxnet3,
# vmw_pvrdma and virtio_net of Linux. The payload follows from standards: Ethernet adds 38 bytes to a packet (802.3:
# preamble, header, checksum, gap), IPv4 20 (RFC 791), TCP 32 with timestamps (RFC 9293, RFC 7323), UDP 8 (RFC 768), and
# RoCE v2 16 (InfiniBand architecture, volume 1: BTH and ICRC).
FRAME, IPV4, TCP, UDP, TRANSPORT = 38, 20, 32, 8, 16
RDMA_MTUS, RDMA_HEADER = (4096, 2048, 1024, 512, 256), 88
# One MPI connection uses one processor: no source establishes its rate on faster links.
MOST_OF_TCP = 25.0


def parsed(text: str, nodes: Iterable[str]) -> tuple[list[dict[str, object]], int]:
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


def _device(about: Mapping[str, object]) -> dict[str, Any]:
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
    found = findings(records, check["asked"], check["least"], check["goal"])
    measured = pairs(records)
    return {
        "name": check["name"],
        "nodes": nodes,
        "transport": check["transport"],
        "started": job.get("started"),
        "ended": job.get("ended"),
        "tool": f"{NCCL} {check['nccl']}" if check["nccl"] else MPI,
        "least": check["least"],
        "expected_gbits": check["goal"] or None,
        "usual_gbits": reference(measured) or None,
        "pairs": sorted(measured, key=lambda pair: pair["gbits"]),
        "cards": [_card(node, records) for node in nodes],
        "findings": [*found, *_gaps(nodes, [pair["nodes"] for pair in measured], job)],
        "malformed": malformed,
    }


def _card(node: str, records: Sequence[Record]) -> dict[str, Any]:
    """Return the devices of a node that carried its traffic, with the expectation, and its bandwidth."""
    own = [record for record in records if record["node"] == node]
    devices = {name: about for record in own for name, about in record["devices"].items() if name in record["carried"]}
    limits = [expected(about) for about in devices.values()]
    known = [limit for limit in limits if limit.gbits]
    rates = [pair["gbits"] for pair in pairs(records) if node in pair["nodes"]]
    return {
        "node": node,
        "device": ", ".join(devices) or None,
        "card": ", ".join(dict.fromkeys(map(name, devices.values()))) or None,
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
    return "-" if value is None else in_gbits(value)


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


def in_gbits(value: float) -> str:
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
    way = f"it sends {in_gbits(out)} and receives {in_gbits(into)} Gbit/s"
    text = f"{node} is slow with every other node: at most {in_gbits(best)} of {in_gbits(usual)} Gbit/s; {way}"
    return {"rule": "slow-node", "nodes": [node], "text": f"{text}. Check its card, link, MTU and ESXi host."}


def _slow_pair(pair: Pair, usual: float) -> PairFinding:
    first, second = pair["nodes"]
    ways = ", ".join(f"{in_gbits(gbits)} from {node}" for node, gbits in sorted(pair["sent"].items()))
    text = f"{first} and {second} are slow only with each other: {ways}, of {in_gbits(usual)} Gbit/s"
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
            text = (
                f"{first} and {second} reach {in_gbits(pair['gbits'])} Gbit/s, less than the expected {in_gbits(floor)}"
            )
            yield {"rule": "below-expected", "nodes": [first, second], "text": f"{text}. Check cards, links and MTU."}


def _limit(records: Sequence[Record], node: str, pair: Pair) -> float:
    """Return what the device that carried the traffic of a pair can carry; 0 if that is not established."""
    own = [each for each in records if each["node"] == node and each["peer"] in pair["nodes"]]
    limits = [
        expected(device).gbits or 0.0
        for each in own
        for name, device in each["devices"].items()
        if name in each["carried"]
    ]
    return min((limit for limit in limits if limit), default=0.0)


@dataclass(frozen=True)
class Card:
    """A kind of card; the nominal rate of a virtual card limits nothing."""

    name: str
    rates: tuple[int, ...]
    is_virtual: bool = False


CARDS: Mapping[str, Card] = {
    "15b3:1013": Card("ConnectX-4", (10, 25, 40, 50, 56, 100)),
    "15b3:1014": Card("ConnectX-4 VF", (10, 25, 40, 50, 56, 100)),
    "15b3:1015": Card("ConnectX-4 Lx", (10, 25, 40, 50)),
    "15b3:1016": Card("ConnectX-4 Lx VF", (10, 25, 40, 50)),
    "15b3:1017": Card("ConnectX-5", (10, 25, 40, 50, 100)),
    "15b3:1018": Card("ConnectX-5 VF", (10, 25, 40, 50, 100)),
    "15b3:1019": Card("ConnectX-5 Ex", (10, 25, 40, 50, 100)),
    "15b3:101a": Card("ConnectX-5 Ex VF", (10, 25, 40, 50, 100)),
    "15b3:101b": Card("ConnectX-6", (10, 25, 40, 50, 100, 200)),
    "15b3:101c": Card("ConnectX-6 VF", (10, 25, 40, 50, 100, 200)),
    "15b3:101d": Card("ConnectX-6 Dx", (10, 25, 40, 50, 100, 200)),
    "15b3:101e": Card("mlx5 VF", (10, 25, 40, 50, 100, 200)),
    "15b3:101f": Card("ConnectX-6 Lx", (10, 25, 40, 50)),
    "15b3:1021": Card("ConnectX-7", (10, 25, 40, 50, 100, 200, 400)),
    "15ad:07b0": Card("VMXNET3", (), True),
    "15ad:0820": Card("PVRDMA", (), True),
    "1af4:1000": Card("virtio", (), True),
    "1af4:1041": Card("virtio", (), True),
}


@dataclass(frozen=True)
class Expected:
    """The payload in Gbit/s that a link can carry; None if it is not established, with the reason."""

    gbits: float | None
    source: str


def name(device: Mapping[str, object]) -> str:
    """Return the name of a card, or its identifier."""
    card = CARDS.get(str(device.get("id") or ""))
    return card.name if card else str(device.get("id") or "unknown card")


def expected(device: Mapping[str, Any]) -> Expected:
    """Return the expectation for a device with ``id``, ``gbits``, ``mtu`` and ``rdma``."""
    is_rdma = bool(device.get("rdma"))
    card, rate = CARDS.get(str(device.get("id") or "")), float(device.get("gbits") or 0)
    if card is None or card.is_virtual:
        return Expected(None, f"not established for {name(device)}")
    if round(rate) not in card.rates:
        return Expected(None, f"not established for {name(device)} at {rate:g} Gbit/s")
    if not is_rdma and rate > MOST_OF_TCP:
        return Expected(None, f"not established for one TCP connection at {rate:g} Gbit/s")
    share = payload_share(int(device.get("mtu") or 0) or 1500, is_rdma)
    return Expected(
        rate * share, f"{rate:g} Gbit/s less the headers of IEEE 802.3 and {'RoCE v2' if is_rdma else 'TCP'}"
    )


def payload_share(mtu: int, is_rdma: bool) -> float:
    """Return the share of the link rate that carries data, in frames as large as the MTU allows."""
    if not is_rdma:
        return (mtu - IPV4 - TCP) / (mtu + FRAME)
    data = next((size for size in RDMA_MTUS if size + RDMA_HEADER <= mtu), RDMA_MTUS[-1])
    return data / (data + FRAME + IPV4 + UDP + TRANSPORT)
