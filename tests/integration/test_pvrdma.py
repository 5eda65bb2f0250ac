"""esxi_pvrdma against the simulated data centre."""

from __future__ import annotations

import json

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


@pytest.mark.datacentre(text=CROOKED)
def test_check_mode_refuses_what_a_run_refuses(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("esxi_pvrdma", hosts=["good.lab"], vmk="vmk1").rc == 0
    vcenter.clear()
    given = ("-i", "inventories/lab", "-e", json.dumps({"esxi_host_profile": {"pvrdma": {"state": "absent"}}}))
    planned = ansible.playbook("playbooks/hosts.yml", "--check", *given)
    error = "good.lab: could not change host profile: worker runs here with a PVRDMA adapter and would lose vmk1"
    assert planned.rc == 2 and error in planned.out and vcenter.writes() == [], planned.out
