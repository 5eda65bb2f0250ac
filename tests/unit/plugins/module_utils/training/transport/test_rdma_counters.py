"""The counters of a job's traffic, and the traffic that a job must have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.output.log import figures
from plugins.module_utils.training.transport import connections
from plugins.module_utils.training.transport.proof import judge
from plugins.module_utils.training.transport.rdma_counters import counters, least_sent

IB = "w1:12:12 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB ens192:10.0.1.1<0>\n"
APART = {"w1": "esx1", "w2": "esx2"}


def device(sent: int | None, name: str = "mlx5_0", driver: str = "mlx5_core") -> dict[str, Any]:
    return {"name": name, "driver": driver, "sent_bytes": sent}


def pvrdma() -> dict[str, Any]:
    return device(None, "vmw_pvrdma0", "vmw_pvrdma")


def esxi(host: str, sent: int, **more: Any) -> dict[str, Any]:
    """Return an entry of esxi_info: PVRDMA is tagged on vmk1 (vmnic2), and other clients use the device of vmnic3."""
    return {
        "host": host,
        "pvrdma": {"vmk": "vmk1"},
        "vmkernel": [{"device": "vmk0", "switch": "vSwitch0"}, {"device": "vmk1", "switch": "rdma"}],
        "switches": [{"name": "rdma", "uplinks": ["vmnic2"]}, {"name": "vSwitch0", "uplinks": ["vmnic0"]}],
        "rdma_users": [{"kind": "NVMe over RDMA", "name": "vmhba64", "uplink": "vmnic3"}],
        "rdma_devices": [
            {"device": "vmrdma0", "uplink": "vmnic2", "counters": {"bytes_sent": sent}},
            {"device": "vmrdma1", "uplink": "vmnic3", "counters": {"bytes_sent": 10**12}},
        ],
        **more,
    }


def proof(rows: list[dict[str, Any]], sent: float = 1000.0) -> tuple[str, str]:
    judged = judge("rdma", figures(IB), esxi_hosts=APART, counters=rows, sent_bytes=sent)
    return judged["transport"], judged["why"]


def both(after: int, **more: Any) -> list[dict[str, Any]]:
    """Return two workers with PVRDMA, whose host counters grow by a number of bytes."""
    return counters(
        {"w1": [pvrdma()], "w2": [pvrdma()]},
        {"w1": [pvrdma()], "w2": [pvrdma()]},
        esxi_hosts=APART,
        esxi_before=[esxi(host, 7, **more) for host in APART.values()],
        esxi_after=[esxi(host, 7 + after, **more) for host in APART.values()],
    )


def test_a_passed_through_card_counts_in_the_guest() -> None:
    rows = counters({"w1": [device(5)], "w2": [device(0)]}, {"w1": [device(905)], "w2": [device(600)]})
    assert [(one["node"], one["source"], one["before"], one["after"]) for one in rows] == [
        ("w1", "guest", 5, 905),
        ("w2", "guest", 0, 600),
    ]
    assert proof(rows) == ("rdma", "NCCL's log says NET/IB, and the RDMA counters grew with the work")


def test_all_cards_of_a_node_count_together() -> None:
    before = {"w1": [device(0), device(0, "mlx5_1")]}
    rows = counters(before, {"w1": [device(300), device(300, "mlx5_1")]})
    assert proof(rows)[0] == "rdma"


def test_pvrdma_counts_only_the_hosts_tagged_device() -> None:
    rows = both(900)
    assert [one["device"] for one in rows] == ["vmrdma0 of esx1", "vmrdma0 of esx2"]
    assert proof(rows)[0] == "rdma"
    assert proof(both(499))[0] == "tcp"
    assert "w1 grew by 0 bytes, and the job sent 1000 or more: it fell back to TCP" in proof(both(0))[1]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"rdma_users": [{"kind": "vSAN", "name": "vmk2", "uplink": "vmnic2"}]}, "is shared with others"),
        ({"rdma_users": [{"kind": "iSER", "name": "vmhba65", "uplink": None}]}, "is shared with others"),
        ({"pvrdma": {}}, "vmrdma1 of esx1 of w1 is shared with others"),
    ],
)
def test_a_device_with_other_users_confirms_nothing(more: dict[str, Any], words: str) -> None:
    transport, why = proof(both(10_000, **more))
    assert transport == "unproven"
    assert words in why


def test_another_jobs_worker_on_the_host_proves_nothing() -> None:
    rows = counters(
        {"w1": [pvrdma()]},
        {"w1": [pvrdma()]},
        esxi_hosts=APART,
        esxi_before=[esxi("esx1", 0)],
        esxi_after=[esxi("esx1", 9000)],
        neighbours={"other": "esx1"},
    )
    assert proof(rows)[0] == "unproven"


def test_pvrdma_without_its_host_confirms_nothing() -> None:
    transport, why = proof(counters({"w1": [pvrdma()]}, {"w1": [pvrdma()]}))
    assert transport == "unproven"
    assert "vmw_pvrdma0 of w1 is paravirtual, and only the counters of its ESXi host count, which were not read" in why


def test_a_host_without_a_second_answer_confirms_nothing() -> None:
    rows = counters({"w1": [pvrdma()]}, {}, esxi_hosts=APART, esxi_before=[esxi("esx1", 0)])
    assert proof(rows) == ("unproven", "NCCL's log says NET/IB, but vmrdma0 of esx1 of w1 has no counter of sent bytes")


@pytest.mark.parametrize(
    ("size", "steps", "nodes", "sent"),
    [(100.0, 10, 2, 1000.0), (100.0, 10, 4, 1500.0), (100.0, 10, 1, None), (0, 10, 2, None), (100.0, 0, 2, None)],
)
def test_computes_the_least_that_a_node_sent(size: float, steps: int, nodes: int, sent: float | None) -> None:
    assert least_sent(size, steps, nodes) == sent


def test_other_nodes_do_not_confirm_one_without_counters() -> None:
    for before in ({"w1": [device(5)], "w2": []}, {"w1": [device(5)]}):
        rows = counters(before, {"w1": [device(9005)], "w2": []})
        assert proof(rows) == ("unproven", "NCCL's log says NET/IB, but w2 has no RDMA device whose counter was read")


@pytest.mark.parametrize("sent", [0.0, -1.0, float("nan")])
def test_no_counter_confirms_a_job_that_sends_nothing(sent: float) -> None:
    transport, why = proof(
        counters({"w1": [device(5)], "w2": [device(5)]}, {"w1": [device(5)], "w2": [device(5)]}), sent
    )
    assert (transport, "allreduces sent is unknown" in why) == ("unproven", True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
DEVICES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["mlx5_0", "mlx5_1"]), "sent_bytes": JSON | st.integers(0, 10**13)},
        optional={"driver": st.sampled_from(["vmw_pvrdma", "mlx5_core"]) | JSON},
    ),
    max_size=2,
)
NODES = st.dictionaries(st.sampled_from(["w1", "w2", "w3"]), DEVICES, max_size=3)


@given(NODES, NODES, st.none() | st.floats() | st.integers(0, 10**12))
def test_confirms_rdma_only_if_every_node_counted_enough(before: Any, after: Any, sent: float | None) -> None:
    """The oracle: each node has valid counters, which do not decrease, and in total grow by half of the work."""
    judged = judge("rdma", figures(IB), esxi_hosts=APART, counters=counters(before, after), sent_bytes=sent)
    is_proven = bool(before) and sent is not None and sent > 0
    for node in {*before, *after}:
        now = {one["name"]: one["sent_bytes"] for one in after.get(node, [])}
        pairs = [(one["sent_bytes"], now.get(one["name"])) for one in before.get(node, [])]
        is_known = all(
            isinstance(value, int) and not isinstance(value, bool) and value >= 0 for pair in pairs for value in pair
        )
        is_own = all(one.get("driver") != "vmw_pvrdma" for one in before.get(node, []))
        is_proven = is_proven and bool(pairs) and is_known and is_own and all(last >= first for first, last in pairs)
        is_proven = is_proven and sum(last - first for first, last in pairs) >= 0.5 * sent
    assert (judged["transport"] == "rdma") == is_proven, judged


RANKS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("rank", "pid", "step", "connections", "rdma_open"), JSON)),
    max_size=2,
)
LOOKS = st.fixed_dictionaries({}, optional={"ranks": RANKS | JSON, "devices": DEVICES | JSON, "checksums": JSON})


@given(st.dictionaries(st.sampled_from(["w1", "w2"]), LOOKS), st.dictionaries(st.sampled_from(["w1", "w2"]), LOOKS))
def test_no_reading_of_nodes_makes_the_judge_raise(first: Any, second: Any) -> None:
    judged = connections.judge(first, second)
    assert set(judged["transports"]) == set(first)
    assert set(judged["transports"].values()) <= {"tcp", "rdma", "unproven"}
    assert isinstance(connections.checksums(second), dict) and isinstance(connections.uses_rdma(second), bool)


def test_ranks_with_unknown_use_of_rdma_are_unproven() -> None:
    rank = {"rank": 0, "pid": 7, "step": 3, "connections": [["10.0.0.1", "10.0.0.2"]]}
    for opened, transport in ((None, "unproven"), (False, "tcp")):
        looks = {"w1": {"ranks": [{**rank, "rdma_open": opened}], "devices": []}}
        assert connections.judge(looks, looks)["transports"] == {"w1": transport}
