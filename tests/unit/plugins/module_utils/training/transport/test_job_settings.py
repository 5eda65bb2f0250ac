"""The settings for each transport, and its check."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.output.log import figures
from plugins.module_utils.training.transport.job_settings import (
    TransportError,
    check_framework,
    gpudirect_environment,
    settings,
    version_of,
)
from plugins.module_utils.training.transport.proof import judge

NODES = [
    {"name": "w1", "interface": "ens192", "hcas": [{"name": "rocep11s0", "gid_index": 3}]},
    {"name": "w2", "interface": "ens192", "hcas": [{"name": "rocep19s0", "gid_index": 3}]},
]
SOCKET = "w1:12:12 [0] NCCL INFO NET/Socket : Using [0]ens192:10.0.1.1<0>\n"
IB = "w1:12:12 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB ens192:10.0.1.1<0>\n"
VIA_IB = "w1:12:12 [0] NCCL INFO Ring 00 : 1 -> 0 [receive] via NET/IB/0\n"
VIA_P2P = "w1:12:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
VIA_UCX = "w1:12:12 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/UCX/0/GDRDMA\n"
VIA_OFI = "w1:12:12 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/AWS Libfabric/0\n"
VIA_IBEXT = "w1:12:12 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IBext_v8/0\n"
USING_UCX = "w1:12:12 [0] NCCL INFO Using network UCX\n"
VIA_SOCKET = "w2:12:12 [0] NCCL INFO Channel 00 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
VIA_P2P = "w1:12:12 [1] NCCL INFO Channel 00 : 0[3000] -> 1[4000] via P2P/IPC\n"
MPI = ["--mca", "pml", "ob1", "--mca", "btl", "^openib"]
UCX = ["--mca", "pml", "ucx"]
APART = {"w1": "esx1", "w2": "esx2"}


def counter(node: str, after: int | None = 900, **more: Any) -> dict[str, Any]:
    return {
        "node": node,
        "device": "mlx5_0",
        "driver": "mlx5_core",
        "source": "guest",
        "before": 0,
        "after": after,
        **more,
    }


def test_rdma_settings_match_the_whitepaper() -> None:
    environment = settings("rdma", NODES, "2.4.7-1+cuda10.0", stun_seconds=100)["environment"]
    assert environment == {
        "NCCL_IB_DISABLE": "0",
        "HOROVOD_MPI_THREADS_DISABLE": "1",
        "NCCL_IB_RETRY_CNT": "7",
        "NCCL_IB_TIMEOUT": "22",
        "NCCL_IB_GID_INDEX": "3",
        "NCCL_IB_HCA": "=rocep11s0,rocep19s0",
        "NCCL_SOCKET_IFNAME": "ens192",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH",
    }


def test_tcp_settings_match_the_whitepaper_and_the_lab() -> None:
    tcp = settings("tcp", NODES, "2.4.7")["environment"]
    assert (tcp["NCCL_IB_DISABLE"], tcp["HOROVOD_MPI_THREADS_DISABLE"]) == ("1", "0")
    assert not {"NCCL_IB_HCA", "NCCL_IB_TIMEOUT", "NCCL_NET_GDR_LEVEL"} & set(tcp)
    lab = settings("tcp", [{"name": "n1"}], None, network="10.77.0.0/24")
    assert lab["environment"] == {"NCCL_IB_DISABLE": "1", "HOROVOD_MPI_THREADS_DISABLE": "0"}
    network = ["--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24"]
    assert lab["mpirun_arguments"][-6:] == network


def test_without_nccl_rdma_uses_mpi_without_tcp_fallback() -> None:
    found = settings("rdma", NODES, None, stun_seconds=100, network="10.216.0.0/16")
    assert found["environment"] == {
        "HOROVOD_MPI_THREADS_DISABLE": "1",
        "UCX_TLS": "rc_v,sm,self",
        "UCX_NET_DEVICES": "rocep11s0:1,rocep19s0:1",
        "UCX_IB_GID_INDEX": "3",
        "UCX_RC_VERBS_RETRY_COUNT": "7",
        "UCX_RC_VERBS_TIMEOUT": "17.180s",
        "UCX_UD_VERBS_ETH_DGID_CHECK": "n",
    }
    assert found["mpirun_arguments"] == [
        *("--bind-to", "none", "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"),
        *("--mca", "oob_tcp_if_include", "10.216.0.0/16"),
    ]


def test_keeps_the_address_check_for_hardware_devices() -> None:
    nodes = [{"name": "w1", "hcas": [{"name": "mlx5_0", "driver": "mlx5_core", "gid_index": 3}]}]
    assert "UCX_UD_VERBS_ETH_DGID_CHECK" not in settings("rdma", nodes, None)["environment"]


@pytest.mark.parametrize(
    ("nccl", "expected", "absent"),
    [
        ("2.3.7", {"NCCL_IB_GDR_LEVEL": "0", "NCCL_IB_GID_INDEX": "3"}, "NCCL_NET_GDR_LEVEL"),
        ("2.14.3", {"NCCL_NET_GDR_LEVEL": "LOC", "NCCL_IB_GID_INDEX": "3"}, "NCCL_IB_ROCE_VERSION_NUM"),
        ("2.25.1", {"NCCL_NET_GDR_LEVEL": "LOC", "NCCL_IB_ROCE_VERSION_NUM": "2"}, "NCCL_IB_GID_INDEX"),
    ],
)
def test_names_and_values_follow_the_version(nccl: str, expected: dict[str, str], absent: str) -> None:
    environment = settings("rdma", NODES, nccl)["environment"]
    environment.update(gpudirect_environment("rdma", NODES, nccl, "auto"))
    assert {key: environment.get(key) for key in expected} == expected
    assert absent not in environment


MELLANOX = [{"name": "w1", "hcas": [{"name": "mlx5_0", "driver": "mlx5_core", "gid_index": 3}]}]


@pytest.mark.parametrize(
    ("gdr", "nodes", "nccl", "level"),
    [
        ("auto", MELLANOX, "2.25.1", None),
        ("auto", NODES, "2.25.1", "LOC"),
        ("auto", [*MELLANOX, *NODES], "2.25.1", "LOC"),
        ("off", MELLANOX, "2.25.1", "LOC"),
        ("off", MELLANOX, "2.4.7", "0"),
        ("PHB", MELLANOX, "2.25.1", "PHB"),
    ],
)
def test_enables_gpudirect_only_for_cards_that_support_it(
    gdr: str, nodes: list[dict[str, Any]], nccl: str, level: str | None
) -> None:
    assert gpudirect_environment("rdma", nodes, nccl, gdr).get("NCCL_NET_GDR_LEVEL") == level


@pytest.mark.parametrize(
    ("gdr", "nodes", "nccl", "words"),
    [
        ("PHB", NODES, "2.25.1", "cannot read the memory of a GPU: choose 'auto'"),
        ("LOC", MELLANOX, "2.25.1", "gdr is 'LOC': expected one of auto, off, PIX, PXB, PHB, SYS"),
        ("SYS", MELLANOX, "2.4.7", "NCCL before 2.5 does not read"),
    ],
)
def test_a_level_that_cannot_be_used_is_refused(gdr: str, nodes: list[dict[str, Any]], nccl: str, words: str) -> None:
    with pytest.raises(TransportError, match=words):
        gpudirect_environment("rdma", nodes, nccl, gdr)


@pytest.mark.parametrize(
    ("transport", "nodes", "nccl", "more", "words"),
    [
        ("ib", NODES, "2.4.7", {}, "expected one of tcp, rdma"),
        ("rdma", [NODES[0], {"name": "w2"}], None, {}, "no RDMA device on w2: choose 'tcp'"),
        (
            "rdma",
            [{"name": "w1", "hcas": [{"name": "rxe0", "gid_index": None}]}],
            None,
            {},
            "no RoCE v2 address on rxe0 of w1",
        ),
        ("rdma", NODES, None, {"stun_seconds": 1e6}, "longer than any time-out"),
        ("rdma", [*NODES, {"name": "w3"}], "2.4.7", {}, "no RDMA device on w3"),
        (
            "rdma",
            [NODES[0], {"name": "w2", "hcas": [{"name": "a", "gid_index": 1}]}],
            "2.4.7",
            {},
            "1 on a of w2; 3 on roce",
        ),
        ("rdma", [{"name": "w2", "hcas": [{"name": "a"}]}], "2.4.7", {}, "no RoCE v2 address on a of w2"),
        ("tcp", NODES, "2.4.7", {"bind_to": "moon"}, "expected one of none, core, numa"),
        ("rdma", NODES, "2.4.7", {"stun_seconds": 1e6}, "longer than any time-out"),
    ],
)
def test_refuses_impossible_options(transport: str, nodes: Any, nccl: str | None, more: Any, words: str) -> None:
    with pytest.raises(TransportError, match=words):
        settings(transport, nodes, nccl, **more)


def test_pytorch_without_horovod_uses_rdma_only_through_nccl() -> None:
    with pytest.raises(TransportError, match="which no node uses: choose 'tcp'"):
        check_framework("pytorch_ddp", "rdma", None)
    for framework, transport, nccl in (
        ("pytorch_ddp", "rdma", "2.29.7"),
        ("pytorch_ddp", "tcp", None),
        ("pytorch", "rdma", None),
    ):
        check_framework(framework, transport, nccl)


def test_reads_a_version() -> None:
    assert version_of("2.4.7-1+cuda10.0") == (2, 4, 7)
    with pytest.raises(TransportError, match="'new'"):
        version_of("new")


@pytest.mark.parametrize(
    ("desired", "log", "more", "transport", "words"),
    [
        ("tcp", SOCKET + VIA_SOCKET, {}, "tcp", "says NET/Socket"),
        ("rdma", VIA_P2P + VIA_UCX, {}, "unproven", "says NET/UCX, a plugin that may use RDMA or TCP"),
        ("rdma", VIA_P2P + VIA_OFI, {}, "unproven", "says NET/AWS Libfabric, a plugin that may use RDMA or TCP"),
        ("rdma", USING_UCX, {}, "unproven", "says NET/UCX, a plugin"),
        ("rdma", VIA_P2P + VIA_IBEXT, {}, "unproven", "says NET/IB, but the number of bytes"),
        ("rdma", VIA_P2P, {}, "local", "says P2P: the ranks share a node"),
        ("rdma", SOCKET + VIA_SOCKET, {}, "tcp", "says NET/Socket"),
        ("rdma", IB + VIA_IB, {}, "unproven", "allreduces sent is unknown"),
        ("rdma", IB + VIA_IB, {"sent_bytes": 1000}, "unproven", "no RDMA counter"),
        ("rdma", IB, {"counters": [counter("w1", before=950)], "sent_bytes": 1}, "unproven", "of w1 decreased"),
        ("rdma", IB, {"counters": [counter("w1", after=None)], "sent_bytes": 1}, "unproven", "w1 has no counter"),
        (
            "rdma",
            IB + VIA_IB,
            {"counters": [counter("w1"), counter("w2")], "sent_bytes": 1000},
            "rdma",
            "grew with the work",
        ),
        ("rdma", IB, {"counters": [counter("w1", 500)], "sent_bytes": 1000}, "rdma", "grew with the work"),
        (
            "rdma",
            IB,
            {"counters": [counter("w1"), counter("w2", 499)], "sent_bytes": 1000},
            "tcp",
            "w2 grew by 499 bytes",
        ),
        ("rdma", IB, {"counters": [counter("w1", driver="vmw_pvrdma")], "sent_bytes": 1}, "unproven", "is paravirtual"),
        (
            "rdma",
            IB,
            {"counters": [counter("w1", driver="vmw_pvrdma", source="host")], "sent_bytes": 1000},
            "rdma",
            "grew with the work",
        ),
        ("rdma", IB, {"counters": [counter("w1", shared=True)], "sent_bytes": 1}, "unproven", "is shared with others"),
        ("rdma", VIA_IB, {"esxi_hosts": {"w1": "esx1", "w2": "esx1"}}, "local", "w1, w2 share esx1"),
        ("rdma", VIA_IB, {"esxi_hosts": {**APART, "w3": "esx2"}}, "local", "w2, w3 share esx2"),
        ("tcp", VIA_SOCKET, {"esxi_hosts": {**APART, "w3": "esx2"}}, "tcp", "says NET/Socket"),
        ("tcp", VIA_SOCKET, {"esxi_hosts": {"w1": "esx1", "w2": "esx1"}}, "local", "w1, w2 share esx1"),
        ("rdma", VIA_IB + VIA_SOCKET, {"esxi_hosts": APART}, "unproven", "for some ranks"),
        ("tcp", IB + VIA_P2P, {}, "local", "share a node"),
        ("tcp", "", {"mpi_arguments": MPI}, "tcp", "could use only TCP between nodes"),
        ("tcp", "", {"mpi_arguments": ["--mca", "pml", "cm"]}, "unproven", "no log of NCCL"),
        ("rdma", "", {"mpi_arguments": UCX}, "unproven", "MPI was set to use UCX, but the number"),
        ("rdma", "", {"mpi_arguments": UCX, "sent_bytes": 1000}, "unproven", "no RDMA counter"),
        (
            "rdma",
            "",
            {"mpi_arguments": UCX, "counters": [counter("w1", driver=None)], "sent_bytes": 1000},
            "rdma",
            "MPI was set to use UCX, and the RDMA counters grew with the work",
        ),
        (
            "rdma",
            "",
            {"mpi_arguments": UCX, "counters": [counter("w1", 22, driver=None)], "sent_bytes": 1000},
            "tcp",
            "MPI was set to use UCX, but the RDMA counters of w1 grew by 22 bytes",
        ),
        (
            "tcp",
            "w1 NCCL INFO Bootstrap : Using [0]ens192",
            {"mpi_arguments": MPI},
            "unproven",
            "does not contain its network",
        ),
    ],
)
def test_the_transport_is_confirmed_or_unproven(desired: str, log: str, more: Any, transport: str, words: str) -> None:
    proof = judge(desired, figures(log), **more)
    assert (proof["transport"], proof["ok"]) == (transport, transport == desired)
    assert words in proof["why"]
