#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what the RDMA fabric of a cluster is, and whether its adapters reach each other."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_fabric_info
short_description: Read the RDMA network of a cluster and ping between its vmkernel adapters
version_added: 1.0.0
description:
  - Reads a distributed switch, its port groups, and of every host of a cluster the RDMA cards, the uplinks and the
    vmkernel adapters on the switch, in few calls for all hosts.
  - With O(ping), on each port group every host pings the next one and the last host the first, by
    C(esxcli network diag ping), with packets of the full MTU that must not be split. A host without connection is in
    two of the pairs.
  - A ping verifies that the adapters reach each other over IP. Only the counters of the cards show RDMA traffic.
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  switch:
    description: Name of the distributed switch.
    type: str
    default: rdma
  ping:
    description: Whether the adapters ping each other. That takes one call for each adapter.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.rdma_fabric
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Fail unless all RDMA adapters of cluster gpu reach each other
  dml.vsphere.rdma_fabric_info:
    cluster: gpu
    switch: rdma
    ping: true
  register: fabric
  failed_when: fabric is failed or fabric.error | length > 0

- name: Show the pings between the RDMA adapters of cluster gpu
  ansible.builtin.debug:
    msg: "{{ fabric.pings | map(attribute='text') }}"
"""

RETURN = r"""
fabric:
  description: The RDMA network as it is.
  returned: success
  type: dict
  contains:
    switch: {description: "C(mtu), and whether it is C(ours); V(null) without a switch.", type: dict}
    port_groups: {description: "By name the C(vlan), V(null) for a trunk, and whether it is C(ours).", type: dict}
    hosts:
      description:
        - By host its C(uplinks) on the switch, its C(rdma) devices, its C(adapters) by port group, what of them this
          collection C(built), and the adapter that is C(tagged) for PVRDMA.
      type: dict
    machines: {description: "The virtual machines on the port groups.", type: list, elements: dict}
pings:
  description: One entry for each ping between two adapters.
  returned: success
  type: list
  elements: dict
  contains:
    port_group: {description: The port group., type: str}
    host: {description: The host that sent the ping., type: str}
    device: {description: The adapter of that host., type: str}
    peer: {description: The host that was pinged., type: str}
    address: {description: The address that was pinged., type: str}
    size: {description: The payload of a packet in bytes., type: int}
    sent: {description: Packets sent., type: int}
    received: {description: Answers received., type: int}
    reached: {description: Whether every packet was answered., type: bool}
    text: {description: The ping as one line., type: str}
    said: {description: The error if there was no answer., type: str}
error:
  description: The pings without all answers as one error; empty if every ping was answered.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.fabric import pings
from ..module_utils.fabric.fabric import Fabric
from ..module_utils.fabric.fabric_spec import FabricSpec
from ..module_utils.vsphere import session

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "switch": {"type": "str", "default": "rdma"},
    "ping": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    with session.session(module.params) as opened:
        fabric = Fabric(opened, FabricSpec(module.params["cluster"], module.params["switch"]))
        info = fabric.info()
        adapters = {name: host["adapters"] for name, host in info["hosts"].items()}
        planned = pings.ring_pings(adapters, list(info["port_groups"])) if module.params["ping"] else []
        answers = pings.send_pings(fabric.hosts, planned)
    error = pings.reach_error(module.params["cluster"], module.params["switch"], answers)
    return {"changed": False, "fabric": info, "pings": answers, "error": error}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
