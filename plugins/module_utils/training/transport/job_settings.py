"""The settings of a job for TCP or RDMA: its environment, and the arguments of mpirun."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

from ...guests import gpudirect
from .node_transport import NetworkCard

TRANSPORTS = ("tcp", "rdma")
# An IB time-out T lasts 4.096 us * 2^T; a message is sent once and repeated RETRIES times.
TICK_SECONDS, RETRIES, SHORTEST_TIMEOUT, LONGEST_TIMEOUT = 4.096e-6, 7, 14, 31
BINDINGS = ("none", "core", "numa")
ALONE = "pytorch_ddp"
_CONSTANTS = {
    "tcp": {"NCCL_IB_DISABLE": "1", "HOROVOD_MPI_THREADS_DISABLE": "0"},
    "rdma": {"NCCL_IB_DISABLE": "0", "HOROVOD_MPI_THREADS_DISABLE": "1", "NCCL_IB_RETRY_CNT": str(RETRIES)},
}


class Hca(TypedDict):
    """An RDMA device: its driver, None for a software device, and the index of its RoCE v2 GID."""

    name: str
    driver: str | None
    gid_index: int | None


class TransportNode(TypedDict, total=False):
    """A node with its interface for NCCL's bootstrap and its network for MPI, if they are known."""

    name: str
    interface: str
    network: str
    card: NetworkCard
    hcas: Sequence[Hca]


class MpirunSettings(TypedDict):
    """The environment of a job, and the arguments of mpirun."""

    environment: dict[str, str]
    mpirun_arguments: list[str]


class TransportError(ValueError):
    """The nodes do not support the transport."""


def settings(
    transport: str,
    nodes: Sequence[TransportNode],
    nccl: str | None = None,
    *,
    stun_seconds: float = 100.0,
    network: str = "",
    bind_to: str = "none",
) -> MpirunSettings:
    """Return the environment and the arguments of mpirun for a job.

    ``network`` serves all nodes. ``nccl`` is its version; None for a job without GPUs, in which MPI uses RDMA through
    UCX.
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
    """Refuse a transport that a framework does not support: PyTorch without Horovod does not use MPI."""
    if framework == ALONE and transport == "rdma" and nccl is None:
        raise TransportError(
            "transport is 'rdma', but PyTorch without Horovod has RDMA only through NCCL, which no node uses: "
            "choose 'tcp'."
        )


def gpudirect_environment(transport: str, nodes: Sequence[TransportNode], nccl: str | None, gdr: str) -> dict[str, str]:
    """Return the variable for GPUDirect RDMA; none if NCCL decides, which it does only for cards that support it.

    ``gdr`` is its use: auto, off, or a level of NCCL. A paravirtual card and Soft-RoCE cannot read the memory of a GPU.
    """
    if transport != "rdma" or nccl is None:
        return {}
    version = version_of(nccl)
    # NCCL 2.4 renamed the variable and ignores the old name.
    name = "NCCL_NET_GDR_LEVEL" if version >= (2, 4) else "NCCL_IB_GDR_LEVEL"
    unfit = [
        f"{hca['name']} of {node['name']}"
        for node in nodes
        for hca in node["hcas"]
        if hca.get("driver") not in gpudirect.CAPABLE
    ]
    if gdr == gpudirect.OFF or (gdr == gpudirect.AUTO and unfit):
        return {name: "LOC" if version >= gpudirect.NAMES_SINCE else "0"}
    if gdr == gpudirect.AUTO:
        return {}
    if gdr not in gpudirect.LEVELS:
        raise TransportError(f"gdr is {gdr!r}: expected one of {', '.join(gpudirect.CHOICES)}.")
    if unfit:
        raise TransportError(f"gdr is {gdr!r}, but {', '.join(unfit)} cannot read the memory of a GPU: choose 'auto'.")
    if version < gpudirect.NAMES_SINCE:
        raise TransportError(f"gdr is {gdr!r}, which NCCL before 2.5 does not read: choose 'auto' or 'off'.")
    return {name: gdr}


def ib_timeout(seconds: float) -> int:
    """Return the shortest InfiniBand time-out that tolerates a silence of a peer for a number of seconds."""
    for timeout in range(SHORTEST_TIMEOUT, LONGEST_TIMEOUT + 1):
        if TICK_SECONDS * 2**timeout * (RETRIES + 1) >= seconds:
            return timeout
    raise TransportError(f"stun_seconds is {seconds:g}: that is longer than any time-out of InfiniBand.")


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a version: (2, 4, 7) for ``2.4.7-1+cuda10.0``."""
    numbers = re.match(r"\d{1,9}(?:\.\d{1,9})*", text)
    if not numbers:
        raise TransportError(f"the version of NCCL is {text!r}: expected a number such as 2.18.3.")
    return tuple(int(part) for part in numbers[0].split("."))


def _mpi(network: str, bind_to: str) -> list[str]:
    """Return the arguments for MPI over TCP: only NCCL uses RDMA, and the messages of mpirun never do."""
    arguments = ["--bind-to", bind_to, "--mca", "pml", "ob1", "--mca", "btl", "^openib"]
    if network:
        arguments += ["--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network]
    return arguments


def _mpi_over_ucx(network: str, bind_to: str) -> list[str]:
    """Return the arguments for MPI only over UCX, also with devices that Open MPI does not prefer for UCX."""
    arguments = ["--bind-to", bind_to, "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any"]
    arguments += ["--mca", "pml_ucx_devices", "any"]
    return [*arguments, "--mca", "oob_tcp_if_include", network] if network else arguments


def _ucx(nodes: Sequence[TransportNode], stun_seconds: float) -> dict[str, str]:
    """Return the environment for only reliable connections with verbs between nodes: UCX cannot fall back to TCP.

    https://openucx.readthedocs.io/en/master/faq.html
    """
    names = dict.fromkeys(f"{hca['name']}:1" for hca in _hcas(nodes))
    environment = {
        "UCX_TLS": "rc_v,sm,self",
        "UCX_NET_DEVICES": ",".join(names),
        "UCX_IB_GID_INDEX": str(_gid_index(nodes)),
        "UCX_RC_VERBS_RETRY_COUNT": str(RETRIES),
        "UCX_RC_VERBS_TIMEOUT": f"{TICK_SECONDS * 2 ** ib_timeout(stun_seconds):.3f}s",
    }
    # Between two Soft-RoCE devices the check silently drops the connection messages of UCX, and UCX gives up.
    if any(hca.get("driver") is None for hca in _hcas(nodes)):
        environment["UCX_UD_VERBS_ETH_DGID_CHECK"] = "n"
    return environment


def _hcas(nodes: Sequence[TransportNode]) -> list[Hca]:
    """Return the RDMA devices of all nodes; each node must have one."""
    without = [str(node["name"]) for node in nodes if not node.get("hcas")]
    if without:
        raise TransportError(f"transport is 'rdma', but there is no RDMA device on {', '.join(without)}: choose 'tcp'.")
    return [hca for node in nodes for hca in node["hcas"]]


def _networks(nodes: Sequence[TransportNode]) -> str:
    """Return the networks of all nodes: MPI uses those that a node has, and Horovod hangs on a container bridge.

    https://github.com/horovod/horovod/issues/98
    """
    return ",".join(dict.fromkeys(str(node["network"]) for node in nodes if node.get("network")))


def _interfaces(nodes: Sequence[TransportNode]) -> dict[str, str]:
    names = dict.fromkeys(str(node["interface"]) for node in nodes if node.get("interface"))
    return {"NCCL_SOCKET_IFNAME": ",".join(names)} if names else {}


def _rdma(nodes: Sequence[TransportNode], nccl: tuple[int, ...], stun_seconds: float) -> dict[str, str]:
    names = dict.fromkeys(str(hca["name"]) for hca in _hcas(nodes))
    environment = {"NCCL_IB_HCA": "=" + ",".join(names), "NCCL_IB_TIMEOUT": str(ib_timeout(stun_seconds))}
    if nccl < (2, 21):
        environment["NCCL_IB_GID_INDEX"] = str(_gid_index(nodes))
    else:
        environment["NCCL_IB_ROCE_VERSION_NUM"] = "2"
    return environment


def _gid_index(nodes: Sequence[TransportNode]) -> int:
    """Return the GID index of all nodes: UCX and NCCL before 2.21 accept one index, and do not detect it."""
    by_index: dict[int | None, list[str]] = {}
    for node in nodes:
        for hca in node["hcas"]:
            by_index.setdefault(hca.get("gid_index"), []).append(f"{hca['name']} of {node['name']}")
    if None in by_index:
        raise TransportError(f"transport is 'rdma', but there is no RoCE v2 address on {', '.join(by_index[None])}.")
    if len(by_index) > 1:
        each = "; ".join(f"{index} on {', '.join(names)}" for index, names in sorted(by_index.items()))
        raise TransportError(
            f"the RoCE v2 addresses have different GID indexes, and UCX and NCCL before 2.21 take one: {each}."
        )
    return next(index for index in by_index if index is not None)
