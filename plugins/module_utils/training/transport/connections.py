# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The transport of each node of a running job between two looks, by its connections and by counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .proof import LEAST_SHARE, doubt_of, grown_by
from .rdma_counters import counters

UNPROVEN = "unproven"
# No model that is worth a GPU sends less in a step.
LEAST_BYTES_PER_STEP = 65536.0

Look = Mapping[str, Mapping[str, Any]]
Rows = Sequence[Mapping[str, Any]]


def judge(
    first: Look,
    second: Look,
    *,
    hosts: tuple[Rows, Rows] = ((), ()),
    at: Mapping[str, str] | None = None,
    rdma: Mapping[str, str] | None = None,
    usual: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """By node ``transports`` (``tcp``, ``rdma`` or ``unproven``), ``why``, and ``bytes_per_step`` where they tell.

    The looks are the ``nodes`` of training_transport_info. For paravirtual RDMA ``hosts`` are the hosts of esxi_info at
    the same two moments and ``at`` tells on which of them each node was; ``rdma`` are all virtual machines with such a
    card and their hosts, where ``at`` does not know better: a counter that two of them share proves nothing. ``usual``
    are the bytes of an earlier judgement that a node must come back to.
    """
    told: dict[str, Any] = {"transports": {}, "why": {}, "bytes_per_step": {}}
    places = at or {}
    cards = {name: places.get(name, host) for name, host in (rdma or {}).items()}
    for node in sorted(first):
        pair = (first[node], second.get(node) or {"error": "nobody looked at it"})
        before, after = ({node: _devices(look)} for look in pair)
        others = {name: host for name, host in cards.items() if name != node}
        sent = counters(before, after, esxi_hosts=places, esxi_before=hosts[0], esxi_after=hosts[1], neighbours=others)
        transport, why, per_step = _of_node(node, pair, sent, (usual or {}).get(node))
        told["transports"][node], told["why"][node] = transport, why
        if per_step is not None:
            told["bytes_per_step"][node] = per_step
    return told


def uses_rdma(look: Look) -> bool:
    """Whether some rank has an RDMA device open, so that the counters of hosts must be read."""
    return any(rank.get("rdma_open") for node in look.values() for rank in dicts(node.get("ranks")))


def checksums(look: Look) -> dict[str, str]:
    """By node and file the checksums of the parameters that ranks ended with."""
    return {
        f"{node}:{file}": str(checksum)
        for node, told in sorted(look.items())
        for file, checksum in _mapping(told.get("checksums")).items()
    }


def _of_node(
    node: str,
    looks: tuple[Mapping[str, Any], Mapping[str, Any]],
    sent: Rows,
    usual: float | None,
) -> tuple[str, str, float | None]:
    ranks = [dicts(look.get("ranks")) for look in looks]
    unseen = _unseen(node, looks, ranks)
    if unseen:
        return UNPROVEN, unseen, None
    opened = [rank.get("rdma_open") for rank in ranks[1]]
    if not any(opened):
        if None in opened:
            return UNPROVEN, f"{node}: whether its ranks have an RDMA device open is not known", None
        return _by_connections(node, ranks[1])
    grown, whose = _grown(sent)
    steps = _steps(ranks[0], ranks[1])
    if grown is None or steps <= 0:
        said = f"has an RDMA device open, but {whose}" if grown is None else "made no step between the two looks"
        return UNPROVEN, f"{node} {said}", None
    least = max(LEAST_BYTES_PER_STEP, LEAST_SHARE * float(usual or 0))
    told = f"{whose} grew by {grown / steps:.0f} bytes a step"
    if grown / steps < least:
        return "tcp", f"{node} has an RDMA device open, but {told}, less than {least:.0f}: it fell back", grown / steps
    return "rdma", told, grown / steps


def _unseen(node: str, looks: Iterable[Mapping[str, Any]], ranks: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """The reason why the ranks of a node could not be read; empty where they were read."""
    silent = next((str(look["error"]) for look in looks if "error" in look), "")
    if silent:
        return f"{node} could not be looked at: {silent}"
    hidden = next((str(rank["error"]) for some in ranks for rank in some if "error" in rank), "")
    return f"{node}: {hidden or 'no rank was found on it'}" if hidden or not ranks[1] else ""


def _by_connections(node: str, ranks: Sequence[Mapping[str, Any]]) -> tuple[str, str, None]:
    alone = [str(rank.get("rank")) for rank in ranks if not _peers(rank)]
    if alone:
        return UNPROVEN, f"{node}: rank {', '.join(alone)} has neither a TCP connection nor an RDMA device open", None
    peers = {peer for rank in ranks for peer in _peers(rank)}
    return "tcp", f"its ranks are connected by TCP to {', '.join(sorted(peers))} and have no RDMA device open", None


def _peers(rank: Mapping[str, Any]) -> list[str]:
    """The addresses to which a rank is connected."""
    pairs = rank.get("connections")
    usable = pairs if isinstance(pairs, (list, tuple)) else ()
    return [str(pair[1]) for pair in usable if isinstance(pair, (list, tuple)) and len(pair) == 2]


def _grown(sent: Rows) -> tuple[float | None, str]:
    """The bytes sent by RDMA between two looks and the counter that counted them; else None and the reason."""
    doubt = doubt_of(sent)
    if doubt:
        return None, doubt
    return float(grown_by(sent)), f"the RDMA counter of {' and '.join(str(one['device']) for one in sent)}"


def _devices(look: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**one, "name": str(one.get("device"))} for one in dicts(look.get("devices"))]


def dicts(value: object) -> list[Mapping[str, Any]]:
    """The entries of a list that are such; none where a node told something else."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, (list, tuple)) else []


def _steps(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> int:
    """The steps of the rank that made the fewest."""
    then = {str(rank.get("rank")): _step(rank) for rank in before}
    return min((_step(rank) - then.get(str(rank.get("rank")), 0) for rank in after), default=0)


def _step(rank: Mapping[str, Any]) -> int:
    step = rank.get("step")
    # pylint: disable-next=unidiomatic-typecheck # True is no step
    return step if type(step) is int else 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
