"""esxi_pvrdma against the simulated data centre."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible

DESIRED = {"cluster": "gpu", "vmk": "vmk1"}

# One good host, and one host for each way in which it cannot work.
CROOKED = """
switches:
  - {name: rdma, mtu: 9000, uplinks: [vmnic2], portgroups: [{name: rdma-vmk, vlan: 216}]}
  - {name: small, mtu: 1500, uplinks: [vmnic1], portgroups: [{name: small-vmk}]}
host_defaults:
  hardware: t4_cx5
  vmkernel:
    - {device: vmk0, portgroup: Management Network, address: "10.0.0.{n}", services: [management]}
    - {device: vmk1, switch: rdma, portgroup: rdma-vmk, address: "10.216.0.{n}", mtu: 9000}
    - {device: vmk2, switch: small, portgroup: small-vmk, address: "10.217.0.{n}", mtu: 1500, services: [vmotion]}
clusters:
  - name: gpu
    hosts:
      - {name: good.lab}
      - {name: teamed.lab, uplinks: {rdma: [vmnic1, vmnic2], small: []}}
      - {name: bare.lab, hardware: no_rdma, uplinks: {rdma: [vmnic1], small: []}}
foreign: [worker]
vms:
  - {name: worker, host: good.lab, powered_on: true, pvrdma: rdma-vmk}
"""


def test_absent_writes_only_to_its_host(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("esxi_pvrdma", **DESIRED).changed
    vcenter.clear()
    assert ansible.module("esxi_pvrdma", hosts=["esx02.lab"], state="absent").changed
    assert {write["name"] for write in vcenter.writes()} == {"esx02.lab"}
    again = ansible.module("esxi_pvrdma", check=True, **DESIRED)
    assert [entry["host"] for entry in again.result["hosts"] if entry["changed"]] == ["esx02.lab"]


def test_number_of_calls_does_not_grow_with_hosts(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("esxi_pvrdma", check=True, **DESIRED)
    for_all = sum(vcenter.calls().values())
    vcenter.clear()
    ansible.module("esxi_pvrdma", check=True, hosts=["esx01.lab"], vmk="vmk1")
    assert sum(vcenter.calls().values()) >= for_all - 1, "five hosts cost as much as one, but for finding the cluster"


@pytest.mark.parametrize(
    ("host", "vmk", "expected"),
    [
        ("good.lab", "vmk9", "there is no vmkernel adapter vmk9; there is vmk0, vmk1, vmk2"),
        ("good.lab", "vmk0", "vmk0 is on the standard switch vSwitch0"),
        ("good.lab", "vmk2", "the only uplink vmnic1 of switch small has no RDMA device"),
        ("teamed.lab", "vmk1", "switch rdma has the uplinks vmnic1, vmnic2 of this host"),
        ("bare.lab", "vmk1", "the host has no RDMA device"),
    ],
)
def test_refuses_impossible_requests_by_name(
    start: Callable[..., Simulator], ansible_for: Callable[..., Ansible], host: str, vmk: str, expected: str
) -> None:
    vcenter = start(text=CROOKED)
    refused = ansible_for(vcenter).module("esxi_pvrdma", hosts=[host], vmk=vmk)
    assert refused.rc == 1 and expected in refused.msg and host in refused.msg
    assert vcenter.writes() == []


def test_unsuitable_host_prevents_changes_to_all_hosts(
    start: Callable[..., Simulator], ansible_for: Callable[..., Ansible]
) -> None:
    vcenter = start(text=CROOKED)
    refused = ansible_for(vcenter).module("esxi_pvrdma", cluster="gpu", vmk="vmk1")
    assert "teamed.lab" in refused.msg and "bare.lab" in refused.msg and "good.lab" not in refused.msg
    assert vcenter.writes() == []


def test_keeps_a_tag_that_a_running_machine_needs(
    start: Callable[..., Simulator], ansible_for: Callable[..., Ansible]
) -> None:
    vcenter = start(text=CROOKED)
    ansible = ansible_for(vcenter)
    assert ansible.module("esxi_pvrdma", hosts=["good.lab"], vmk="vmk1").rc == 0
    vcenter.clear()
    planned = ansible.module("esxi_pvrdma", check=True, hosts=["good.lab"], state="absent")
    assert "worker runs here with a PVRDMA adapter" in planned.host("good.lab")["unmet"][0]
    kept = ansible.module("esxi_pvrdma", hosts=["good.lab"], state="absent")
    assert kept.rc == 1 and "worker" in kept.msg and vcenter.writes() == []


def test_check_mode_refuses_what_a_run_refuses(
    start: Callable[..., Simulator], ansible_for: Callable[..., Ansible]
) -> None:
    vcenter = start(text=CROOKED)
    ansible = ansible_for(vcenter)
    assert ansible.module("esxi_pvrdma", hosts=["good.lab"], vmk="vmk1").rc == 0
    vcenter.clear()
    given = ("-i", "inventories/lab", "-e", json.dumps({"esxi_host_profile": {"pvrdma": {"state": "absent"}}}))
    planned = ansible.playbook("playbooks/hosts.yml", "--check", *given)
    error = "good.lab: could not change host profile: worker runs here with a PVRDMA adapter and would lose vmk1"
    assert planned.rc == 2 and error in planned.out and vcenter.writes() == [], planned.out


def test_names_a_missing_privilege_and_finishes_next_time(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.fault("UpdateOptions", name="esx03.lab", fault="NoPermission")
    result = ansible.module("esxi_pvrdma", **DESIRED).msg
    assert "esx03.lab" in result and "Net.PVRDMAVmknic" in result and "NoPermission" in result
    vcenter.clear()
    assert ansible.module("esxi_pvrdma", **DESIRED).rc == 0
    assert [(write["method"], write["name"]) for write in vcenter.writes()] == [("UpdateOptions", "esx03.lab")]
