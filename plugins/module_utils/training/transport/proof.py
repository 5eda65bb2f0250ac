"""The transport that a job used, from NCCL's log and from RDMA counters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from ..output.log import Figures

# The counters must show at least this share of the bytes that the allreduces must have sent.
LEAST_SHARE = 0.5
PARAVIRTUAL = "vmw_pvrdma"
KNOWN = {"NET/IB", "NET/Socket"}


class RdmaCounter(TypedDict):
    """The bytes that a device sent before and after a job, read in the ``guest`` or on its ESXi ``host``."""

    node: str
    device: str | None
    driver: str | None
    source: str
    shared: bool
    before: int | None
    after: int | None


class TransportProof(TypedDict):
    """The desired transport, the one that a job used, whether they are equal, and the evidence."""

    wanted: str
    transport: str
    ok: bool
    why: str


def judge(
    desired: str,
    printed: Figures,
    *,
    esxi_hosts: Mapping[str, str] | None = None,
    counters: Iterable[RdmaCounter] = (),
    sent_bytes: float | None = None,
    mpi_arguments: Sequence[str] = (),
) -> TransportProof:
    """Return the ``transport`` (``tcp``, ``rdma``, ``local`` or ``unproven``), whether it is ``ok``, and ``why``.

    ``esxi_hosts``: node -> ESXi host. ``sent_bytes``: the least number of bytes that the allreduces of one node must
    have sent. ``mpi_arguments``: without NCCL, they show whether MPI could use only TCP.
    """
    transport, why = _transport(desired, printed, esxi_hosts or {}, list(counters), sent_bytes, mpi_arguments)
    return {"wanted": desired, "transport": transport, "ok": transport == desired, "why": why}


def _transport(
    desired: str,
    printed: Figures,
    esxi_hosts: Mapping[str, str],
    counters: Sequence[RdmaCounter],
    sent_bytes: float | None,
    mpi_arguments: Sequence[str],
) -> tuple[str, str]:
    together = _together(desired, esxi_hosts)
    if together:
        return "local", f"{together}: their traffic is copied in memory"
    ways = set(printed["ways"])
    if not ways:
        return _without_nccl(printed["has_nccl"], mpi_arguments, counters, sent_bytes)
    return _by_ways(ways, counters, sent_bytes)


def _by_ways(ways: set[str], counters: Sequence[RdmaCounter], sent_bytes: float | None) -> tuple[str, str]:
    """Return the transport and the evidence by the networks that NCCL's log names."""
    unknown = sorted(way for way in ways - KNOWN if way.startswith("NET/"))
    if unknown:
        return "unproven", f"NCCL's log says {' and '.join(unknown)}, a plugin that may use RDMA or TCP"
    if ways == {"NET/Socket"}:
        return "tcp", "NCCL's log says NET/Socket"
    if "NET/Socket" in ways:
        return "unproven", "NCCL's log shows NET/IB for some ranks and NET/Socket for others"
    if ways == {"NET/IB"}:
        return _by_counters("NCCL's log says NET/IB", counters, sent_bytes)
    return "local", f"NCCL's log says {' and '.join(sorted(ways))}: the ranks share a node"


def _together(desired: str, esxi_hosts: Mapping[str, str]) -> str:
    """Return the workers that share an ESXi host, as text; for TCP only if all share one, as TCP has another check."""
    if desired == "tcp" and len(set(esxi_hosts.values())) > 1:
        return ""
    on: dict[str, list[str]] = {}
    for node, host in esxi_hosts.items():
        on.setdefault(host, []).append(node)
    return "; ".join(f"{', '.join(nodes)} share {host}" for host, nodes in on.items() if len(nodes) > 1)


def _without_nccl(
    has_nccl: bool, mpi_arguments: Sequence[str], counters: Sequence[RdmaCounter], sent_bytes: float | None
) -> tuple[str, str]:
    if has_nccl:
        return "unproven", "NCCL's log does not contain its network"
    words = " ".join(mpi_arguments)
    if "pml ucx" in words:
        return _by_counters("MPI was set to use UCX", counters, sent_bytes)
    is_tcp = "pml ob1" in words and re.search(r"btl (?:\^openib|tcp,self|self,tcp)\b", words)
    if is_tcp:
        return "tcp", "NCCL was not used, and without it the ranks could use only TCP between nodes"
    return "unproven", "there is no log of NCCL"


def _by_counters(evidence: str, counters: Sequence[RdmaCounter], sent_bytes: float | None) -> tuple[str, str]:
    """Check the counters, because ``evidence`` is not sufficient: PVRDMA silently falls back to TCP."""
    if sent_bytes is None or not sent_bytes > 0:
        return "unproven", f"{evidence}, but the number of bytes that the job's allreduces sent is unknown"
    doubt = doubt_of(counters)
    if doubt:
        return "unproven", f"{evidence}, but {doubt}"
    for node in dict.fromkeys(str(counter["node"]) for counter in counters):
        grown = grown_by([counter for counter in counters if str(counter["node"]) == node])
        if grown < sent_bytes * LEAST_SHARE:
            growth = f"the RDMA counters of {node} grew by {grown:.0f} bytes, and the job sent {sent_bytes:.0f} or more"
            return "tcp", f"{evidence}, but {growth}: it fell back to TCP"
    return "rdma", f"{evidence}, and the RDMA counters grew with the work"


def doubt_of(counters: Sequence[RdmaCounter]) -> str:
    """Return the reason why the counters do not show the transport; empty if they do."""
    return next((doubt for doubt in map(_doubt, counters) if doubt), "" if counters else "no RDMA counter was read")


def _doubt(counter: RdmaCounter) -> str:
    """Return the reason why a counter does not show the transport; empty if it does."""
    name = f"{counter['device']} of {counter['node']}"
    if counter["device"] is None:
        return f"{counter['node']} has no RDMA device whose counter was read"
    if counter.get("driver") == PARAVIRTUAL and counter.get("source") != "host":
        return f"{name} is paravirtual, and only the counters of its ESXi host count, which were not read"
    if counter.get("shared"):
        return f"{name} is shared with others: its counters include other traffic"
    before, after = (_bytes(counter.get(key)) for key in ("before", "after"))
    if before is None or after is None:
        return f"{name} has no counter of sent bytes"
    if after < before:
        return f"the counter of {name} decreased: it was reset meanwhile"
    return ""


def grown_by(counters: Sequence[RdmaCounter]) -> int:
    """Return the certain growth of counters in bytes."""
    return sum((_bytes(counter["after"]) or 0) - (_bytes(counter["before"]) or 0) for counter in counters)


def _bytes(value: object) -> int | None:
    """Return a number of bytes; None for anything else."""
    # pylint: disable-next=unidiomatic-typecheck # True is not a number here
    return value if type(value) is int and value >= 0 else None
