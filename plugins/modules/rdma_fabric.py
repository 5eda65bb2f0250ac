#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the RDMA fabric of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_fabric
short_description: Build the RDMA network of a cluster, switch to vmkernel adapters, in one call
version_added: 1.0.0
description:
  - Brings a distributed switch with the RDMA card of every host of a cluster as its only uplink, its port groups, and
    the vmkernel adapters on them to what is wanted, by one plan for the whole cluster.
  - All is read first, in few calls for all hosts. What cannot be is refused by name before anything is written. What
    was changed is read again, and what still differs is an error.
  - Only options that are given are managed. Networks, adapters and hosts that others put on the switch stay.
  - What this module builds it marks, by the description C(Built by dml.vsphere for cluster ...) of switch and port
    groups, and by the custom attribute C(dml.vsphere.fabric) of hosts. O(state=absent) takes away what is marked.
  - A run that was killed is gone on with by the next.
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  state:
    description:
      - V(absent) takes away what this module built. It is refused while a virtual machine, or an adapter that others
        added, uses it. Besides O(cluster) only O(switch) matters then.
    type: str
    choices: [present, absent]
    default: present
  switch:
    description: Name of the distributed switch.
    type: str
    default: rdma
  mtu:
    description: The MTU of the switch, from 1280 to 9000.
    type: int
    default: 9000
  uplink:
    description:
      - The card that every host gives, such as V(vmnic2). Where it is not named, each host gives its only RDMA card
        that no other switch has.
    type: str
  port_groups:
    description: Port groups of the switch.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Its name, which no other network of the data centre may have.
        type: str
        required: true
      vlan:
        description: Its VLAN, V(0) for none. A new port group has none, an existing one keeps its own if not given.
        type: int
  adapters:
    description: vmkernel adapters that every host of the cluster has.
    type: list
    elements: dict
    default: []
    suboptions:
      port_group:
        description: The port group it is on. One adapter for each port group.
        type: str
        required: true
      device:
        description:
          - The name that it must have, such as V(vmk1). ESXi names a new adapter by the lowest free number, so the call
            is refused where it would get another name, or where that adapter is on another switch.
        type: str
      network:
        description: The IPv4 network of the addresses, such as V(10.216.0.0/24). Without it addresses come by DHCP.
        type: str
      addresses:
        description: The address of every host, by the host's name.
        type: dict
      mtu:
        description: The MTU, by default that of the switch.
        type: int
      services:
        description:
          - Exactly the services that it carries. Management is not among them, it stays apart from this network.
            Adapters for PVRDMA should carry none.
        type: list
        elements: str
        choices: [faultToleranceLogging, nvmeRdma, nvmeTcp, vmotion, vSphereBackupNFC, vSphereProvisioning,
          vSphereReplication, vSphereReplicationNFC, vsan, vsanWitness]
  adopt:
    description:
      - Whether a switch of that name which this module did not build may be changed. What it was before is in the
        diff; O(state=absent) takes away only what was added.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - The uplink of a host, and MTU and VLAN of what exists, are not changed while virtual machines with a PVRDMA adapter
    run on it.
seealso:
  - module: dml.vsphere.rdma_fabric_info
  - module: dml.vsphere.esxi_pvrdma
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: An RDMA network for PVRDMA
  dml.vsphere.rdma_fabric:
    cluster: gpu
    switch: rdma
    mtu: 9000
    port_groups:
      - {name: rdma-vmk, vlan: 216}
      - {name: rdma-vm, vlan: 216}
    adapters:
      - port_group: rdma-vmk
        device: vmk1
        network: 10.216.0.0/24
        addresses:
          esx01.lab: 10.216.0.1
          esx02.lab: 10.216.0.2
        services: []

- name: Take it away again
  dml.vsphere.rdma_fabric:
    cluster: gpu
    switch: rdma
    state: absent
"""

RETURN = r"""
fabric:
  description: The fabric as it is, in check mode as it would be. What is taken away is V(null).
  returned: success
  type: dict
  contains:
    switch: {description: The switch with its C(mtu)., type: dict}
    port_groups: {description: The port groups by name with their C(vlan)., type: dict}
    hosts:
      description: By host its C(uplinks), and its C(adapters) by port group.
      type: dict
  sample:
    switch: {mtu: 9000}
    port_groups: {rdma-vmk: {vlan: 216}}
    hosts:
      esx01.lab:
        uplinks: [vmnic2]
        adapters:
          rdma-vmk: {device: vmk1, port_group: rdma-vmk, address: 10.216.0.1, netmask: 255.255.255.0, mtu: 9000}
unmet:
  description: Why the plan cannot be carried out right now.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner, single
from ..module_utils.fabric import desired, planner
from ..module_utils.fabric.fabric import Fabric
from ..module_utils.vsphere import session

SERVICES = (
    "faultToleranceLogging",
    "nvmeRdma",
    "nvmeTcp",
    "vmotion",
    "vSphereBackupNFC",
    "vSphereProvisioning",
    "vSphereReplication",
    "vSphereReplicationNFC",
    "vsan",
    "vsanWitness",
)
PORT_GROUP = {"name": {"type": "str", "required": True}, "vlan": {"type": "int"}}
ADAPTER = {
    "port_group": {"type": "str", "required": True},
    "device": {"type": "str"},
    "network": {"type": "str"},
    "addresses": {"type": "dict"},
    "mtu": {"type": "int"},
    "services": {"type": "list", "elements": "str", "choices": list(SERVICES)},
}
ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "switch": {"type": "str", "default": "rdma"},
    "mtu": {"type": "int", "default": 9000},
    "uplink": {"type": "str"},
    "port_groups": {"type": "list", "elements": "dict", "default": [], "options": PORT_GROUP},
    "adapters": {"type": "list", "elements": "dict", "default": [], "options": ADAPTER},
    "adopt": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    wanted = desired.desired(module.params)
    with session.session(module.params) as opened:
        fabric = Fabric(opened, wanted, present=module.params["state"] == "present")
        result = single.converge(module, fabric)
    state = result.pop("state", {})
    return {**result, "fabric": planner.shown(state)}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
