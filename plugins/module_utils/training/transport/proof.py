# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The transport that a job used, from NCCL's log and from RDMA counters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# So much of what the allreduces must have sent has to show in the counters.
LEAST_SHARE = 0.5
PARAVIRTUAL = "vmw_pvrdma"
_VIA = re.compile(r"NCCL INFO.*\bvia (?:direct )?(NET/IB|NET/Socket|P2P|SHM|direct shared memory)")
_USING = re.compile(r"NCCL INFO (?:NET/(?P<plugin>IB|Socket) : Using|Using network (?P<network>IB|Socket))")


def judge(
    wanted: str,
    log: str,
    *,
    esxi_hosts: Mapping[str, str] | None = None,
    counters: Iterable[Mapping[str, Any]] = (),
    sent_bytes: float | None = None,
    mpi_arguments: Sequence[str] = (),
) -> dict[str, Any]:
    """Say ``transport`` (``tcp``, ``rdma``, ``local`` or ``unproven``), whether it is ``ok``, and ``why``.

    ``esxi_hosts``: node -> ESXi host. ``counters``: ``node, device, driver, source`` (``guest`` or ``host``),
    ``shared`` (others use the device too), ``before``, ``after`` in bytes sent. ``sent_bytes``: what the allreduces of
    one node must have sent at least. ``mpi_arguments`` of a job without NCCL prove that MPI had no other way than TCP.
    """
    transport, why = _found(wanted, log, esxi_hosts or {}, list(counters), sent_bytes, mpi_arguments)
    return {"wanted": wanted, "transport": transport, "ok": transport == wanted, "why": why}


def _found(
    wanted: str,
    log: str,
    esxi_hosts: Mapping[str, str],
    counters: Sequence[Mapping[str, Any]],
    sent_bytes: float | None,
    mpi_arguments: Sequence[str],
) -> tuple[str, str]:
    together = _together(wanted, esxi_hosts)
    if together:
        return "local", f"{together}: their traffic is copied in memory"
    ways = _ways(log)
    if not ways:
        return _without_nccl(log, mpi_arguments, counters, sent_bytes)
    if ways == {"NET/Socket"}:
        return "tcp", "NCCL's log says NET/Socket"
    if "NET/Socket" in ways:
        return "unproven", "NCCL's log says NET/IB of some ranks and NET/Socket of others"
    if ways == {"NET/IB"}:
        return _by_counters("NCCL's log says NET/IB", counters, sent_bytes)
    return "local", f"NCCL's log says {' and '.join(sorted(ways))}: the ranks share a node"


def _together(wanted: str, esxi_hosts: Mapping[str, str]) -> str:
    """The workers that share an ESXi host, in words; for TCP only if all share one, as TCP is proven otherwise."""
    if wanted == "tcp" and len(set(esxi_hosts.values())) > 1:
        return ""
    on: dict[str, list[str]] = {}
    for node, host in esxi_hosts.items():
        on.setdefault(host, []).append(node)
    return "; ".join(f"{', '.join(nodes)} share {host}" for host, nodes in on.items() if len(nodes) > 1)


def _ways(log: str) -> set[str]:
    """The connections of the ranks between nodes; those within nodes only if there are no others."""
    between = {found[1] for found in _VIA.finditer(log)}
    across = {way for way in between if way.startswith("NET/")}
    if across or between:
        return across or between
    return {f"NET/{found['plugin'] or found['network']}" for found in _USING.finditer(log)}


def _without_nccl(
    log: str, mpi_arguments: Sequence[str], counters: Sequence[Mapping[str, Any]], sent_bytes: float | None
) -> tuple[str, str]:
    if "NCCL INFO" in log:
        return "unproven", "NCCL's log does not tell its network"
    words = " ".join(mpi_arguments)
    if "pml ucx" in words:
        return _by_counters("MPI was told to use UCX", counters, sent_bytes)
    is_tcp = "pml ob1" in words and re.search(r"btl (?:\^openib|tcp,self|self,tcp)\b", words)
    if is_tcp:
        return "tcp", "NCCL was not used, and without it the ranks were given no other way between nodes than TCP"
    return "unproven", "there is no log of NCCL"


def _by_counters(said: str, counters: Sequence[Mapping[str, Any]], sent_bytes: float | None) -> tuple[str, str]:
    """What is ``said`` is not enough: below it PVRDMA falls back to TCP without a word."""
    if sent_bytes is None or not sent_bytes > 0:
        return "unproven", f"{said}, but what the job's allreduces sent is not known"
    doubt = doubt_of(counters)
    if doubt:
        return "unproven", f"{said}, but {doubt}"
    for node in dict.fromkeys(str(counter["node"]) for counter in counters):
        grown = grown_by([one for one in counters if str(one["node"]) == node])
        if grown < sent_bytes * LEAST_SHARE:
            told = f"the RDMA counters of {node} grew by {grown:.0f} bytes, and the job sent {sent_bytes:.0f} or more"
            return "tcp", f"{said}, but {told}: it fell back to TCP"
    return "rdma", f"{said}, and the RDMA counters grew with the work"


def doubt_of(counters: Sequence[Mapping[str, Any]]) -> str:
    """The reason why some counters prove nothing; empty if they prove the transport."""
    return next((doubt for doubt in map(_doubt, counters) if doubt), "" if counters else "no RDMA counter was read")


def _doubt(counter: Mapping[str, Any]) -> str:
    """The reason why a counter proves nothing; empty if the counter can prove the transport."""
    name = f"{counter['device']} of {counter['node']}"
    if counter["device"] is None:
        return f"{counter['node']} has no RDMA device whose counter was read"
    if counter.get("driver") == PARAVIRTUAL and counter.get("source") != "host":
        return f"{name} is paravirtual, and only counters of its ESXi host tell, which were not read"
    if counter.get("shared"):
        return f"{name} is shared with others: its counters are not the job's alone"
    before, after = (_bytes(counter.get(key)) for key in ("before", "after"))
    if before is None or after is None:
        return f"{name} has no counter of what it sent"
    if after < before:
        return f"the counter of {name} went back: it was reset meanwhile"
    return ""


def grown_by(counters: Sequence[Mapping[str, Any]]) -> int:
    """The bytes by which some counters grew that leave no doubt."""
    return sum((_bytes(one["after"]) or 0) - (_bytes(one["before"]) or 0) for one in counters)


def _bytes(value: object) -> int | None:
    """A count of bytes; None for what is none."""
    # pylint: disable-next=unidiomatic-typecheck # True is no count
    return value if type(value) is int and value >= 0 else None
