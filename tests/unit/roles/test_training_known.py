"""The facts determine the defaults of training, and whether a worker gets RDMA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.training.transport import node_transport
from tests.rendering import truth, value

ROOT = Path(__file__).parents[3]
NODE = {
    "ens224": {"device": "ens224", "speed": 100000, "ipv4": {"address": "10.216.1.11", "netmask": "255.255.0.0"}},
    "ansible_local": {
        "dml_cuda": {"versions": {"nccl": "2.21.5"}, "devices": [{}, {}]},
        "dml_horovod": {"framework": "pytorch", "uses_nccl": True, "venv": "/opt/mine"},
        "dml_rdma": {"proven": True, "devices": [{"card": "ens224"}, {"card": "ens225"}]},
        "dml_stack": {"proven": True, "name": "current"},
    },
}
FOLLOWS: dict[str, Any] = {
    "training_stack": "current",
    "training_transport": "rdma",
    "training_nccl": "2.21.5",
    "training_framework": "pytorch",
    "training_python": "/opt/mine/bin/python",
    "training_ranks_per_node": 2,
    "training_sweep_transports": ["tcp", "rdma"],
}


@pytest.mark.parametrize(("name", "expected"), FOLLOWS.items())
def test_an_option_follows_from_what_the_roles_noted(name: str, expected: Any) -> None:
    known = node_transport.default_settings({"w1": NODE, "w2": NODE})
    assert value("training", name, __training_known=known, inventory_hostname="w1", ansible_facts={}) == expected


def test_before_anything_is_known_the_options_have_values() -> None:
    assert value("training", "training_transport", inventory_hostname="w1") == "tcp"
    assert value("training", "training_ranks_per_node", inventory_hostname="w1") == 1
    nothing = node_transport.default_settings({"w1": {}})
    where = value("training", "training_python", inventory_hostname="w1", __training_known=nothing, ansible_facts={})
    assert where == "/opt/dml/horovod/bin/python"


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"vm_rdma_macs": ["00:50:56:01:02:04"]}, True),
        ({"vm_rdma_macs": []}, False),
        ({}, False),
        ({"vm_rdma_macs": ["00:50:56:01:02:04"], "rdma_expected": False}, False),
        ({"rdma_expected": True}, True),
    ],
)
def test_worker_with_an_rdma_card_gets_its_driver(reported: dict[str, Any], expected: bool) -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks" / "guests.yml").read_text())
    (include,) = [one for one in play["tasks"] if one["tags"] == ["rdma"]]
    assert truth(include["when"], **reported) is expected


@pytest.mark.parametrize(
    ("reported", "driver", "after"),
    [
        ({}, "vmw_pvrdma", "vmxnet3"),
        ({"vm_rdma_classes": []}, "vmw_pvrdma", "vmxnet3"),
        ({"vm_rdma_classes": ["cx7"]}, "mlx5_ib", "mlx5_core"),
    ],
)
def test_driver_follows_the_kind_of_rdma_card(reported: dict[str, Any], driver: str, after: str) -> None:
    assert (value("rdma", "rdma_module", **reported), value("rdma", "rdma_module_after", **reported)) == (driver, after)
    assert value("rdma", "rdma_reload", rdma_module=driver, **reported) is (driver == "vmw_pvrdma")
