"""One RDMA switch of two clusters: both build it at the same time, and each removes only its own part."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.fabrics import datacentre, desired

SECOND = """  - name: cpu
    drs: {enabled: true, behaviour: partiallyAutomated}
    hosts: [{name: "esx%02d.lab", count: 2, first: 21}]
"""
HOSTS = {"gpu": ["esx01.lab"], "cpu": ["esx21.lab", "esx22.lab"]}


@pytest.mark.slow
@pytest.mark.datacentre(text=datacentre(count=1, more=SECOND))
def test_two_clusters_share_one_switch_and_remove_parts(vcenter: Simulator, ansible: Ansible) -> None:
    building = [ansible.start_module("rdma_fabric", **network_of(cluster), **vcenter.connection) for cluster in HOSTS]
    texts = [process.communicate(timeout=300)[0] for process in building]
    assert [process.returncode for process in building] == [0, 0], texts
    for cluster in HOSTS:
        assert not ansible.module("rdma_fabric", **network_of(cluster)).changed

    planned = ansible.adhoc("program", name="teardown", options={"cluster": "gpu"}).result
    assert planned["refused"] == "" and "leave the switch rdma to esx21.lab, esx22.lab of other clusters" in str(
        planned
    )
    gone = ansible.module("rdma_fabric", cluster="gpu", state="absent")
    assert gone.rc == 0, gone.msg
    assert "switch rdma stays with its port groups: esx21.lab, esx22.lab of other clusters are on it" in gone.out
    assert not ansible.adhoc("program", name="teardown", options={"cluster": "gpu"}).result["fabric"]
    assert not ansible.module("rdma_fabric", cluster="gpu", state="absent").changed
    assert not ansible.module("rdma_fabric", **network_of("cpu")).changed, "the other cluster keeps its network"

    assert ansible.module("rdma_fabric", cluster="cpu", state="absent").rc == 0
    left = ansible.module("cluster_info", cluster="cpu", switch="rdma").result["fabric"]
    assert (left["switch"], left["port_groups"]) == (None, {})


def network_of(cluster: str) -> dict[str, Any]:
    fabric = desired(HOSTS[cluster], cluster=cluster)
    (adapter,) = fabric["adapters"]
    adapter["addresses"] = {host: f"10.216.0.{int(host[3:5])}" for host in HOSTS[cluster]}
    return fabric
