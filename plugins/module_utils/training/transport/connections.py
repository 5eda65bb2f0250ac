"""The transport of each node of a running job between two readings, from its connections and counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from ...core.json_values import mapping, objects
from .proof import LEAST_SHARE, RdmaCounter, doubt_of, grown_by
from .rdma_counters import counters

UNPROVEN = "unproven"
# Every realistic model sends more bytes in a step.
LEAST_BYTES_PER_STEP = 65536.0

Reading = Mapping[str, Mapping[str, object]]
Rows = Sequence[Mapping[str, object]]


class NodeTransports(TypedDict):
    """The transport of each node, its evidence, and the bytes that it sends with RDMA in a step."""

    transports: dict[str, str]
    why: dict[str, str]
    bytes_per_step: dict[str, float]


def judge(
    first: Reading,
    second: Reading,
    *,
    hosts: tuple[Rows, Rows] = ((), ()),
    at: Mapping[str, str] | None = None,
    rdma: Mapping[str, str] | None = None,
    usual: Mapping[str, float] | None = None,
) -> NodeTransports:
    """Return, by node, ``transports`` (``tcp``, ``rdma`` or ``unproven``), ``why``, and ``bytes_per_step`` if known.

    The readings are the ``nodes`` of read_connections. For paravirtual RDMA, ``hosts`` are the hosts of
    esxi_info at the same two times, and ``at`` is the host of each node. ``rdma`` are all virtual machines with such an
    adapter and their hosts, for machines that ``at`` lacks: a counter that two machines share does not count. ``usual``
    are the bytes per step of an earlier check: a node must send a share of them.
    """
    judged = NodeTransports(transports={}, why={}, bytes_per_step={})
    places = at or {}
    cards = {name: places.get(name, host) for name, host in (rdma or {}).items()}
    for node in sorted(first):
        pair = (first[node], second.get(node) or {"error": "it was not read"})
        before, after = ({node: _devices(reading)} for reading in pair)
        others = {name: host for name, host in cards.items() if name != node}
        sent = counters(before, after, esxi_hosts=places, esxi_before=hosts[0], esxi_after=hosts[1], neighbours=others)
        transport, why, per_step = _of_node(node, pair, sent, (usual or {}).get(node))
        judged["transports"][node], judged["why"][node] = transport, why
        if per_step is not None:
            judged["bytes_per_step"][node] = per_step
    return judged


def uses_rdma(reading: Reading) -> bool:
    """Return whether a rank has an RDMA device open: then the counters of hosts are necessary."""
    return any(rank.get("rdma_open") for node in reading.values() for rank in objects(node.get("ranks")))


def checksums(reading: Reading) -> dict[str, str]:
    """Return the checksums of the ranks' final parameters by node and file."""
    return {
        f"{node}:{file}": str(checksum)
        for node, values in sorted(reading.items())
        for file, checksum in mapping(values.get("checksums")).items()
    }


def _of_node(
    node: str,
    readings: tuple[Mapping[str, object], Mapping[str, object]],
    sent: Sequence[RdmaCounter],
    usual: float | None,
) -> tuple[str, str, float | None]:
    ranks = [objects(reading.get("ranks")) for reading in readings]
    unreadable = _unreadable(node, readings, ranks)
    if unreadable:
        return UNPROVEN, unreadable, None
    opened = [rank.get("rdma_open") for rank in ranks[1]]
    if not any(opened):
        if None in opened:
            return UNPROVEN, f"{node}: it is unknown whether its ranks have an RDMA device open", None
        return _by_connections(node, ranks[1])
    grown, whose = _grown(sent)
    steps = _steps(ranks[0], ranks[1])
    if grown is None or steps <= 0:
        reason = f"has an RDMA device open, but {whose}" if grown is None else "made no step between the two readings"
        return UNPROVEN, f"{node} {reason}", None
    least = max(LEAST_BYTES_PER_STEP, LEAST_SHARE * float(usual or 0))
    growth = f"{whose} grew by {grown / steps:.0f} bytes a step"
    if grown / steps < least:
        why = f"{node} has an RDMA device open, but {growth}, less than {least:.0f}: it fell back"
        return "tcp", why, grown / steps
    return "rdma", growth, grown / steps


def _unreadable(
    node: str, readings: Iterable[Mapping[str, object]], ranks: Sequence[Sequence[Mapping[str, object]]]
) -> str:
    """Return the reason why the ranks of a node could not be read; empty if they were read."""
    silent = next((str(reading["error"]) for reading in readings if "error" in reading), "")
    if silent:
        return f"{node} could not be read: {silent}"
    hidden = next((str(rank["error"]) for some in ranks for rank in some if "error" in rank), "")
    return f"{node}: {hidden or 'no rank was found on it'}" if hidden or not ranks[1] else ""


def _by_connections(node: str, ranks: Sequence[Mapping[str, object]]) -> tuple[str, str, None]:
    alone = [str(rank.get("rank")) for rank in ranks if not _peers(rank)]
    if alone:
        return UNPROVEN, f"{node}: rank {', '.join(alone)} has neither a TCP connection nor an RDMA device open", None
    peers = {peer for rank in ranks for peer in _peers(rank)}
    return "tcp", f"its ranks are connected by TCP to {', '.join(sorted(peers))} and have no RDMA device open", None


def _peers(rank: Mapping[str, object]) -> list[str]:
    """Return the addresses to which a rank is connected."""
    pairs = rank.get("connections")
    usable = pairs if isinstance(pairs, (list, tuple)) else ()
    return [str(pair[1]) for pair in usable if isinstance(pair, (list, tuple)) and len(pair) == 2]


def _grown(sent: Sequence[RdmaCounter]) -> tuple[float | None, str]:
    """Return the bytes sent with RDMA between two readings and the name of their counter; else None and the reason."""
    doubt = doubt_of(sent)
    if doubt:
        return None, doubt
    return float(grown_by(sent)), f"the RDMA counter of {' and '.join(str(counter['device']) for counter in sent)}"


def _devices(reading: Mapping[str, object]) -> list[dict[str, object]]:
    return [{**device, "name": str(device.get("device"))} for device in objects(reading.get("devices"))]


def _steps(before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]) -> int:
    """Return the steps of the rank with the fewest steps."""
    first = {str(rank.get("rank")): _step(rank) for rank in before}
    return min((_step(rank) - first.get(str(rank.get("rank")), 0) for rank in after), default=0)


def _step(rank: Mapping[str, object]) -> int:
    step = rank.get("step")
    # pylint: disable-next=unidiomatic-typecheck # True is not a step
    return step if type(step) is int else 0
