"""The settings from the facts of the nodes: the transport, the adapter of both transports, the framework, the ranks."""

from __future__ import annotations

from typing import Any

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


def test_falls_back_to_the_default_routes_card() -> None:
    settings = node_transport.default_settings({"w1": node(), "w2": node(rdma=None)})
    assert settings["interfaces"] == {"w1": "ens192", "w2": "ens192"}


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
