"""esxi_info against the simulated data centre."""

from __future__ import annotations

import jmespath
import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start

MANY = """
switches:
  - {name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vmk, vlan: 216}]}
host_defaults:
  hardware: t4_cx5
clusters:
  - name: gpu
    hosts:
      - {name: "esx%02d.lab", count: COUNT}
"""
PER_HOST, PER_RUN = 12, 20


@pytest.mark.parametrize("count", [1, 12])
def test_full_read_stays_within_its_call_budget(start: Start, ansible_for: AnsibleFor, count: int) -> None:
    vcenter = start(text=MANY.replace("COUNT", str(count)))
    outcome = ansible_for(vcenter).module("esxi_info", cluster="gpu")
    assert outcome.rc == 0, outcome.out
    assert len(outcome.result["hosts"]) == count
    assert sum(vcenter.calls().values()) <= PER_HOST * count + PER_RUN
    assert vcenter.writes() == []


def test_lists_the_events_of_a_change(vcenter: Simulator, ansible: Ansible) -> None:
    fresh = ansible.module("esxi_info", hosts=["esx01.lab"]).host("esx01.lab")
    assert (fresh["version"], fresh["cluster"], fresh["reboot_owed"]) == ("8.0.3", "gpu", False)
    (gpu,), (rdma,) = fresh["gpus"], fresh["rdma_devices"]
    assert (gpu["address"], gpu["memory_mb"], gpu["numa_node"]) == ("0000:3b:00.0", 16384, 0)
    assert (rdma["device"], rdma["uplink"], rdma["pfc"], rdma["numa_node"]) == ("vmrdma0", "vmnic2", [], 0)
    assert {card["device"]: card["switch"] for card in fresh["uplinks"]}["vmnic2"] == "rdma"
    assert {one["device"]: one["services"] for one in fresh["vmkernel"]} == {"vmk0": ["management"], "vmk1": []}
    ansible.module("esxi_roce", hosts=["esx01.lab"])
    ansible.module("esxi_pvrdma", hosts=["esx01.lab"], vmk="vmk1")
    changed = ansible.module("esxi_info", hosts=["esx01.lab"]).host("esx01.lab")
    assert changed["pvrdma"] == {"vmk": "vmk1", "firewall_open": True, "firewall_allowed": []}
    assert changed["kernel_modules"]["nmlx5_core"]["options"]["pfctx"] == "0x08"
    assert changed["kernel_modules"]["nmlx5_core"]["active"] == {}
    assert changed["reboot_why"] == ["kernel module nmlx5_core waits for it", "kernel module nmlx5_rdma waits for it"]


def test_counts_rdma_and_uplink_traffic_separately(vcenter: Simulator, ansible: Ansible) -> None:
    def sent() -> list[int]:
        result = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["rdma"]).result
        query = "hosts[0].rdma_devices[0].[counters.bytes_sent, uplink_counters.bytes_sent]"
        return list(jmespath.search(query, result))

    before = sent()
    vcenter.set_host("esx01.lab", traffic={"nic": {"vmnic2": {"tx_bytes": 5_000_000, "rx_bytes": 0}}})
    assert sent() == [before[0], before[1] + 5_000_000]
    vcenter.set_host("esx01.lab", traffic={"rdma": {"vmrdma0": {"tx_bytes": 7_000_000, "rx_bytes": 0}}})
    assert sent() == [before[0] + 7_000_000, before[1] + 5_000_000]


def test_reports_what_manages_the_hosts(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_host("esx02.lab", host_profile="golden")
    vcenter.set_cluster("gpu", image_managed=True)
    result = ansible.module("esxi_info", cluster="gpu", gather=["management"]).result
    assert {entry["image_managed"] for entry in result["hosts"]} == {True}
    assert jmespath.search("hosts[?host_profile].[host, host_profile]", result) == [["esx02.lab", "golden"]]


def test_lost_host_does_not_hide_the_others(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_host("esx03.lab", connection="notResponding")
    strict = ansible.module("esxi_info", cluster="gpu")
    assert strict.rc == 1 and "vCenter shows it as notResponding" in strict.msg
    assert strict.result["unreachable_hosts"] == ["esx03.lab"]
    assert strict.host("esx03.lab")["connection"] == "notResponding" and strict.host("esx04.lab")["gpus"]
    assert ansible.module("esxi_info", cluster="gpu", fail_unreachable=False).rc == 0
