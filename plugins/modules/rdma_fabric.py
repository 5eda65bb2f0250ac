#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the RDMA fabric of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_fabric
short_description: Build the RDMA network of a cluster, from switch to vmkernel adapters, in one call
version_added: 1.0.0
description:
  - Builds a distributed switch with the RDMA card of every host of a cluster as its only uplink, its port groups, and
    the vmkernel adapters on them, or changes the differences, with one plan for the whole cluster.
  - The module first reads all objects, in few calls for all hosts. If a request is impossible, it fails before the
    first write and names the objects. It reads the changed objects again, and fails if they still differ.
  - The module manages only the given options. Networks, adapters and hosts that others put on the switch stay.
  - The module marks the objects that it builds, with the description C(Built by dml.vsphere for cluster ...) of
    switch and port groups, and with the custom attribute C(dml.vsphere.fabric) of hosts. O(state=absent) removes the
    marked objects.
  - The next run continues an interrupted run.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
  state:
    description:
      - V(absent) removes the objects that this module built. The module fails while a virtual machine, or an adapter
        that others added, uses them. V(absent) needs only the options O(cluster) and O(switch).
    type: str
    choices: [present, absent]
    default: present
  switch: {description: Name of the distributed switch., type: str, default: rdma}
  mtu: {description: "The MTU of the switch, from 1280 to 9000.", type: int, default: 9000}
  uplink:
    description:
      - The uplink of every host, such as V(vmnic2). Without it, the uplink is the only RDMA card of a host that no
        other switch uses.
    type: str
  port_groups:
    description: Port groups of the switch.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the port group. No other network of the data centre may have the same name.
        type: str
        required: true
      vlan:
        description:
          - VLAN of the port group, V(0) for none. Without it, a new port group gets no VLAN and an existing one keeps
            its own.
        type: int
  adapters:
    description: vmkernel adapters that every host of the cluster has.
    type: list
    elements: dict
    default: []
    suboptions:
      port_group:
        description: Port group of the adapter. There is one adapter for each port group.
        type: str
        required: true
      device:
        description:
          - Name of the adapter, such as V(vmk1). ESXi gives a new adapter the lowest free number, so the module fails
            if the adapter would get another name, or if the adapter with that name is on another switch.
        type: str
      network:
        description: The IPv4 network of the addresses, such as V(10.216.0.0/24). Without it, addresses come from DHCP.
        type: str
      addresses: {description: "The address of every host, by host name.", type: dict}
      mtu: {description: "The MTU, by default that of the switch.", type: int}
      services:
        description:
          - Exactly the services of the adapter. Management is not a choice, because it stays apart from this network.
            Adapters for PVRDMA should have no service.
        type: list
        elements: str
        choices: [faultToleranceLogging, nvmeRdma, nvmeTcp, vmotion, vSphereBackupNFC, vSphereProvisioning,
          vSphereReplication, vSphereReplicationNFC, vsan, vsanWitness]
  adopt:
    description:
      - Whether the module may change a switch with that name that it did not build. The diff has the old values;
        O(state=absent) removes only the added objects.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.lock
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - The module does not change the VLAN of a port group while running virtual machines use it, nor the uplink of a
    host or the MTU of the switch while running virtual machines use them with a PVRDMA adapter or a device of a class.
seealso:
  - module: dml.vsphere.cluster_info
  - module: dml.vsphere.esxi_pvrdma
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Build a network for PVRDMA
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

- name: Remove the RDMA network
  dml.vsphere.rdma_fabric:
    cluster: gpu
    switch: rdma
    state: absent
"""

RETURN = r"""
fabric:
  description: The fabric, in check mode as it would be after the changes. Removed objects are V(null).
  returned: success
  type: dict
  contains:
    switch: {description: The switch with its C(mtu)., type: dict}
    port_groups: {description: The port groups by name with their C(vlan)., type: dict}
    hosts: {description: "By host its C(uplinks), and its C(adapters) by port group.", type: dict}
  sample:
    switch: {mtu: 9000}
    port_groups: {rdma-vmk: {vlan: 216}}
    hosts:
      esx01.lab:
        uplinks: [vmnic2]
        adapters:
          rdma-vmk: {device: vmk1, port_group: rdma-vmk, address: 10.216.0.1, netmask: 255.255.255.0, mtu: 9000}
unmet: {description: The reasons why the plan cannot be applied now., returned: success, type: list, elements: str}
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.fabric import fabric_spec, planner
from ..module_utils.fabric.fabric import Fabric
from ..module_utils.maintenance.lock import holder, own_lock
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
    **own_lock.ARGUMENTS,
}


def body(module: AnsibleModule) -> runner.Result:
    desired = fabric_spec.fabric_spec_of(module.params)
    cluster, force = module.params["cluster"], module.params["force_unlock"]
    with holder.marked(), session.session(module.params) as opened:
        fabric = Fabric(opened, desired, present=module.params["state"] == "present")
        with own_lock.OwnLock(opened, cluster, force=force, check=runner.only_plans(module)) as lock:
            result = runner.converge_one(module, lock.guarded(fabric))
    state = result.pop("state", {})
    return {**result, "fabric": planner.result_of(state)}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
