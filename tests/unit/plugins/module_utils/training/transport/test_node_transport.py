"""The settings from the facts of the nodes: the transport, the adapter of both transports, the framework, the ranks."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.transport import node_transport

CUDA = {"proven": True, "versions": {"nccl": "2.21.5"}, "devices": [{"name": "GRID T4-16C"}]}
HOROVOD = {"proven": True, "framework": "pytorch", "uses_nccl": True, "venv": "/opt/dml/horovod"}
RDMA = {"proven": True, "devices": [{"card": "ens224", "device": "vmw_pvrdma0"}]}
# Interfaces in the form of ansible.builtin.setup; docker0 exists too, and is never selected.
CARDS = {
    "default_ipv4": {"interface": "ens192", "address": "10.0.1.11"},
    "docker0": {"device": "docker0", "type": "bridge", "ipv4": {"address": "172.17.0.1", "netmask": "255.255.0.0"}},
    "ens192": {"device": "ens192", "speed": 10000, "ipv4": {"address": "10.0.1.11", "netmask": "255.255.255.0"}},
    "ens224": {"device": "ens224", "speed": 100000, "ipv4": {"address": "10.216.1.11", "netmask": "255.255.0.0"}},
    "br_lab": {"device": "br-lab", "speed": -1, "ipv4": {"address": "10.9.0.1", "netmask": "255.255.0.0"}},
}


def node(**proofs: Any) -> dict[str, Any]:
    """Return the facts of a node with such proofs."""
    kept = {"cuda": CUDA, "horovod": HOROVOD, "rdma": RDMA, **proofs}
    return {**CARDS, "ansible_local": {f"dml_{name}": proof for name, proof in kept.items() if proof}}


def test_chooses_rdma_and_its_card_for_both_transports() -> None:
    stack = {"proven": True, "name": "a100-2021"}
    settings = node_transport.default_settings({"w1": node(stack=stack), "w2": node(stack=stack)})
    assert settings == {
        "stack": "a100-2021",
        "transport": "rdma",
        "transports": ["tcp", "rdma"],
        "nccl": "2.21.5",
        "framework": "pytorch",
        "python": "/opt/dml/horovod/bin/python",
        "ranks_per_node": 1,
        "interfaces": {"w1": "ens224", "w2": "ens224"},
    }


@pytest.mark.parametrize(
    "lacking",
    [{"rdma": None}, {"rdma": {**RDMA, "proven": False}}, {"cuda": None}, {"horovod": {**HOROVOD, "uses_nccl": False}}],
)
def test_all_nodes_use_tcp_if_one_lacks_rdma(lacking: dict[str, Any]) -> None:
    settings = node_transport.default_settings({"w1": node(), "w2": node(**lacking)})
    assert (settings["transport"], settings["transports"]) == ("tcp", ["tcp"])


def test_falls_back_to_the_default_routes_card() -> None:
    settings = node_transport.default_settings({"w1": node(), "w2": node(rdma=None)})
    assert settings["interfaces"] == {"w1": "ens192", "w2": "ens192"}


def test_a_node_without_facts_uses_the_defaults() -> None:
    assert node_transport.default_settings({"w1": {}}) == {
        "stack": "",
        "transport": "tcp",
        "transports": ["tcp"],
        "nccl": "",
        "framework": "tensorflow",
        "python": "",
        "ranks_per_node": 1,
        "interfaces": {"w1": ""},
    }


def test_pytorch_without_horovod_uses_its_python_and_nccl() -> None:
    """An earlier stack may have left Horovod on the node."""
    own = {"proven": True, "framework": "pytorch_ddp", "uses_nccl": True, "nccl": "2.29.7", "venv": "/opt/dml/pytorch"}
    stack = {"name": "passthrough-ubuntu24", "trains_by": "pytorch"}
    driver = {"proven": True, "gpus": [{}, {}]}
    settings = node_transport.default_settings({"w1": node(pytorch=own, stack=stack, cuda=None, gpu_driver=driver)})
    assert (settings["framework"], settings["nccl"], settings["transport"]) == ("pytorch_ddp", "2.29.7", "rdma")
    assert (settings["python"], settings["ranks_per_node"]) == ("/opt/dml/pytorch/bin/python", 2)
    back = node_transport.default_settings(
        {"w1": node(pytorch=own, stack={"name": "vgpu-ubuntu24", "trains_by": "horovod"})}
    )
    assert (back["framework"], back["nccl"], back["python"]) == ("pytorch", "2.21.5", "/opt/dml/horovod/bin/python")
    on_cpus = node_transport.default_settings(
        {"w1": node(pytorch={**own, "uses_nccl": False, "nccl": ""}, stack=stack)}
    )
    assert (on_cpus["nccl"], on_cpus["transport"]) == ("", "tcp")


def test_nodes_of_different_stacks_share_no_stack() -> None:
    settings = node_transport.default_settings(
        {"w1": node(stack={"name": "vgpu-ubuntu24"}), "w2": node(stack={"name": "lab-cpu"})}
    )
    assert settings["stack"] == ""


@pytest.mark.parametrize(("counts", "ranks"), [((2, 2), 2), ((4, 2), 2), ((0, 0), 1)])
def test_each_gpu_has_a_rank(counts: tuple[int, int], ranks: int) -> None:
    nodes = {f"w{count}": node(cuda={**CUDA, "devices": [{}] * count}) for count in counts}
    assert node_transport.default_settings(nodes)["ranks_per_node"] == ranks


def test_counts_gpus_by_driver_without_a_cuda_toolkit() -> None:
    assert (
        node_transport.default_settings({"w1": node(cuda=None, gpu_driver={"gpus": [{}, {}]})})["ranks_per_node"] == 2
    )


def test_a_card_has_its_address_network_and_speed() -> None:
    def card_of(facts: Any, name: str) -> tuple[Any, ...]:
        settings = node_transport.network_card(facts, name)
        assert settings["card"] == name
        return settings["address"], settings["network"], settings["speed"]

    assert card_of(CARDS, "ens224") == ("10.216.1.11", "10.216.0.0/16", 100.0)
    assert card_of(CARDS, "br-lab") == ("10.9.0.1", "10.9.0.0/16", None)
    several = {"eth0": {"device": "eth0", "ipv4": [CARDS["ens192"]["ipv4"]]}, "dns": {"ipv4": ["10.0.0.2"]}}
    assert card_of(several, "eth0") == ("10.0.1.11", "10.0.1.0/24", None)
    assert node_transport.interface(several, "10.0.1.11") == "eth0"
    assert card_of(CARDS, "") == ("", "", None)


@pytest.mark.parametrize(("address", "name"), [("10.216.1.11", "ens224"), ("w1.example.com", "ens192"), ("", "ens192")])
def test_the_interface_of_an_address_is_found(address: str, name: str) -> None:
    assert node_transport.interface(CARDS, address) == name


def test_the_slowest_card_is_the_speed_of_all() -> None:
    fast, slow = {"card": "ens224", "speed": 100.0}, {"card": "ens225", "speed": 25.0}
    assert node_transport.slowest([fast, slow, fast]) == {"card": "ens224, ens225", "speed": 25.0}
    assert node_transport.slowest([fast, {"card": "ens224", "speed": None}]) == {"card": "ens224", "speed": None}
    assert node_transport.slowest([]) == {"card": "", "speed": None}
