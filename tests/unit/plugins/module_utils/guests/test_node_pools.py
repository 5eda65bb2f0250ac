# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The workers as machines of SkyPilot and dstack: addresses, users and paths of keys, and no other variable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.module_utils.guests import node_pools

LOGIN = {"ansible_user": "ubuntu", "ansible_ssh_private_key_file": "~/.ssh/gpu"}


def workers(**more: Any) -> dict[str, dict[str, Any]]:
    return {
        "w1": {**LOGIN, "ansible_host": "10.0.0.1", "vm_rdma_addresses": ["192.168.5.1"], **more},
        "w2": {**LOGIN, "ansible_host": "10.0.0.2", "vm_rdma_addresses": ["192.168.5.2"]},
    }


def test_a_pool_of_skypilot_has_a_login_for_each_host() -> None:
    hosts = [{"ip": f"10.0.0.{number}", "user": "ubuntu", "identity_file": "~/.ssh/gpu"} for number in (1, 2)]
    assert node_pools.skypilot("gpus", workers()) == {"gpus": {"hosts": hosts}}


def test_a_fleet_of_dstack_uses_the_network_of_the_training() -> None:
    fleet = node_pools.dstack("gpus", workers(ansible_port=2222))
    assert {key: fleet[key] for key in ("type", "name", "placement")} == {
        "type": "fleet",
        "name": "gpus",
        "placement": "cluster",
    }
    login = {"user": "ubuntu", "identity_file": "~/.ssh/gpu"}
    assert fleet["ssh_config"]["hosts"] == [
        {"hostname": "10.0.0.1", **login, "port": 2222, "internal_ip": "192.168.5.1"},
        {"hostname": "10.0.0.2", **login, "internal_ip": "192.168.5.2"},
    ]


@pytest.mark.parametrize("address", ["", None, "8.8.8.8", "rdma.example.com"])
def test_internal_addresses_are_private_and_those_of_all_workers(address: str | None) -> None:
    fleet = node_pools.dstack("gpus", workers(vm_rdma_addresses=[address]))
    assert not [host for host in fleet["ssh_config"]["hosts"] if "internal_ip" in host]


@pytest.mark.parametrize("export", [node_pools.skypilot, node_pools.dstack])
def test_no_secret_is_exported(export: Any) -> None:
    secrets = {"ansible_password": "s3cret", "ansible_become_password": "s3cret", "gpu_driver_licence_token": "s3cret"}
    assert "s3cret" not in json.dumps(export("gpus", workers(**secrets)))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ansible_user": None}, "w1: ansible_host is '10.0.0.1' and ansible_user is '': set both to one word."),
        ({"ansible_host": "a b"}, "w1: ansible_host is 'a b' and ansible_user is 'ubuntu': set both to one word."),
        ({"ansible_host": "-oProxyCommand=x"}, "w1: ansible_host is '-oProxyCommand=x'"),
        ({"ansible_ssh_private_key_file": ""}, "w1: ansible_ssh_private_key_file is not set"),
        ({"ansible_ssh_common_args": "-o ProxyJump=gate"}, "w1 is reached through another host"),
        ({"ansible_ssh_extra_args": "-J gate"}, "w1 is reached through another host"),
    ],
)
def test_a_worker_that_others_cannot_reach_is_refused(more: dict[str, Any], words: str) -> None:
    for export in (node_pools.skypilot, node_pools.dstack):
        with pytest.raises(node_pools.PoolError) as refused:
            export("gpus", workers(**more))
        assert str(refused.value).startswith(words)


def test_skypilot_has_no_ports_and_names_are_those_of_both_tools() -> None:
    with pytest.raises(node_pools.PoolError, match="w1: ansible_port is 2222, and a node pool of SkyPilot contains no"):
        node_pools.skypilot("gpus", workers(ansible_port=2222))
    with pytest.raises(node_pools.PoolError, match="export_name is 'My Pool': expected"):
        node_pools.dstack("My Pool", workers())
    assert node_pools.skypilot("gpus", workers(ansible_ssh_common_args="-o StrictHostKeyChecking=no"))
