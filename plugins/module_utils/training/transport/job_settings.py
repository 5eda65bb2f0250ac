# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The settings of a job for TCP or RDMA: its environment, and the arguments of mpirun."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

TRANSPORTS = ("tcp", "rdma")
# An IB time-out T lasts 4.096 us * 2^T, and is tried once and RETRIES times more.
TICK_SECONDS, RETRIES, SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 4.096e-6, 7, 14, 31
BINDINGS = ("none", "core", "numa")
ALONE = "pytorch_ddp"
_CONSTANTS = {
    "tcp": {"NCCL_IB_DISABLE": "1", "HOROVOD_MPI_THREADS_DISABLE": "0"},
    "rdma": {"NCCL_IB_DISABLE": "0", "HOROVOD_MPI_THREADS_DISABLE": "1", "NCCL_IB_RETRY_CNT": str(RETRIES)},
}


class TransportError(ValueError):
    """A transport that these nodes cannot have."""


def settings(
    transport: str,
    nodes: Sequence[Mapping[str, Any]],
    nccl: str | None = None,
    *,
    stun_seconds: float = 100.0,
    network: str = "",
    bind_to: str = "none",
) -> dict[str, Any]:
    """The environment and the arguments for a job.

    ``nodes`` have ``name``, ``interface`` (for NCCL's bootstrap), ``network`` (for MPI, unless one serves all) and,
    for RDMA, ``hcas``: a list of ``name``, ``driver`` (None for a device of software) and ``gid_index`` (of the RoCE v2
    GID). ``nccl`` is its version, None for a job without GPUs, whose RDMA is that of MPI itself, by UCX.
    """
    if transport not in TRANSPORTS:
        raise TransportError(f"transport is {transport!r}: expected one of {', '.join(TRANSPORTS)}.")
    if bind_to not in BINDINGS:
        raise TransportError(f"bind_to is {bind_to!r}: expected one of {', '.join(BINDINGS)}.")
    environment = dict(_CONSTANTS[transport])
    if nccl is not None:
        environment.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,GRAPH")
        environment.update(_interfaces(nodes))
    arguments = _mpi(network or _networks(nodes), bind_to)
    if transport == "rdma" and nccl is None:
        environment = {"HOROVOD_MPI_THREADS_DISABLE": "1", **_ucx(nodes, stun_seconds)}
        arguments = _mpi_over_ucx(network or _networks(nodes), bind_to)
    elif transport == "rdma":
        environment.update(_rdma(nodes, version_of(str(nccl)), stun_seconds))
    return {"environment": environment, "mpirun_arguments": arguments}


def check_framework(framework: str, transport: str, nccl: str | None) -> None:
    """Refuse what the ranks of a framework cannot do: those of PyTorch alone do not speak by MPI."""
    if framework == ALONE and transport == "rdma" and nccl is None:
        raise TransportError(
            "transport is 'rdma', and PyTorch without Horovod has RDMA by NCCL alone, which no node uses: choose 'tcp'."
        )


def ib_timeout(seconds: float) -> int:
    """The smallest InfiniBand time-out that outlasts a peer that does not answer for some seconds."""
    for timeout in range(SHORTEST_TIMEOUT, LONGEST_TIMEOUT + 1):
        if TICK_SECONDS * 2**timeout * (RETRIES + 1) >= seconds:
            return timeout
    raise TransportError(f"stun_seconds is {seconds:g}: that is longer than any time-out of InfiniBand.")


def version_of(text: str) -> tuple[int, ...]:
    """``2.4.7-1+cuda10.0`` -> (2, 4, 7)."""
    found = re.match(r"\d{1,9}(?:\.\d{1,9})*", text)
    if not found:
        raise TransportError(f"the version of NCCL is {text!r}: expected a number such as 2.18.3.")
    return tuple(int(part) for part in found[0].split("."))


def _mpi(network: str, bind_to: str) -> list[str]:
    """MPI stays on TCP: NCCL alone uses RDMA, and mpirun's own messages never do."""
    arguments = ["--bind-to", bind_to, "--mca", "pml", "ob1", "--mca", "btl", "^openib"]
    if network:
        arguments += ["--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]
    return arguments


def _mpi_over_ucx(network: str, bind_to: str) -> list[str]:
    """MPI by UCX alone, also over devices of which Open MPI does not know that UCX serves them well."""
    arguments = ["--bind-to", bind_to, "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any"]
    arguments += ["--mca", "pml_ucx_devices", "any"]
    return [*arguments, "--mca", "oob_tcp_if_include", network] if network else arguments


def _ucx(nodes: Sequence[Mapping[str, Any]], stun_seconds: float) -> dict[str, str]:
    """Reliable connections by verbs and nothing else between nodes: UCX has no TCP to which it could fall back.

    https://openucx.readthedocs.io/en/master/faq.html
    """
    names = dict.fromkeys(f"{hca['name']}:1" for hca in _hcas(nodes))
    found = {
        "UCX_TLS": "rc_v,sm,self",
        "UCX_NET_DEVICES": ",".join(names),
        "UCX_IB_GID_INDEX": str(_gid_index(nodes)),
        "UCX_RC_VERBS_RETRY_COUNT": str(RETRIES),
        "UCX_RC_VERBS_TIMEOUT": f"{TICK_SECONDS * 2 ** ib_timeout(stun_seconds):.3f}s",
    }
    # Between two Soft-RoCE devices the check drops the messages by which UCX connects, silently, and it gives up.
    if any(hca.get("driver") is None for hca in _hcas(nodes)):
        found["UCX_UD_VERBS_ETH_DGID_CHECK"] = "n"
    return found


def _hcas(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The RDMA devices of all nodes, of which each must have one."""
    without = [str(node["name"]) for node in nodes if not node.get("hcas")]
    if without:
        raise TransportError(f"transport is 'rdma', but there is no RDMA device on {', '.join(without)}: choose 'tcp'.")
    return [hca for node in nodes for hca in node["hcas"]]


def _networks(nodes: Sequence[Mapping[str, Any]]) -> str:
    """The networks of all nodes, of which MPI takes those that a node has; on a bridge of containers Horovod hangs.

    https://github.com/horovod/horovod/issues/98
    """
    return ",".join(dict.fromkeys(str(node["network"]) for node in nodes if node.get("network")))


def _interfaces(nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names = dict.fromkeys(str(node["interface"]) for node in nodes if node.get("interface"))
    return {"NCCL_SOCKET_IFNAME": ",".join(names)} if names else {}


def _rdma(nodes: Sequence[Mapping[str, Any]], nccl: tuple[int, ...], stun_seconds: float) -> dict[str, str]:
    names = dict.fromkeys(str(hca["name"]) for hca in _hcas(nodes))
    found = {"NCCL_IB_HCA": "=" + ",".join(names), "NCCL_IB_TIMEOUT": str(ib_timeout(stun_seconds))}
    # NCCL 2.4 renamed it and reads the old name no more.
    found["NCCL_NET_GDR_LEVEL" if nccl >= (2, 4) else "NCCL_IB_GDR_LEVEL"] = "LOC" if nccl >= (2, 5) else "0"
    if nccl < (2, 21):
        found["NCCL_IB_GID_INDEX"] = str(_gid_index(nodes))
    else:
        found["NCCL_IB_ROCE_VERSION_NUM"] = "2"
    return found


def _gid_index(nodes: Sequence[Mapping[str, Any]]) -> int:
    """One index for all nodes: UCX and NCCL before 2.21 take no other, and find none by themselves."""
    found: dict[Any, list[str]] = {}
    for node in nodes:
        for hca in node["hcas"]:
            found.setdefault(hca.get("gid_index"), []).append(f"{hca['name']} of {node['name']}")
    if None in found:
        raise TransportError(f"transport is 'rdma', but there is no RoCE v2 address on {', '.join(found[None])}.")
    if len(found) > 1:
        each = "; ".join(f"{index} on {', '.join(names)}" for index, names in sorted(found.items()))
        raise TransportError(
            f"the RoCE v2 addresses have different GID indexes, and UCX and NCCL before 2.21 take one: {each}."
        )
    return int(next(iter(found)))
