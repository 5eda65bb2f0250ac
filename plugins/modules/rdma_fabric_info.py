#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what the RDMA fabric of a cluster is, and whether its adapters reach each other."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_fabric_info
short_description: Read the RDMA network of a cluster, and let its vmkernel adapters ping each other
version_added: 1.0.0
description:
  - Reads a distributed switch, its port groups, and of every host of a cluster the RDMA cards, the uplinks and the
    vmkernel adapters on the switch, in few calls for all hosts.
  - With O(ping), on each port group every host asks the next one and the last the first, by
    C(esxcli network diag ping), with packets of the full MTU that must not be split. A host that is cut off is in two
    of the pairs.
  - A ping shows that the adapters reach each other over IP. That RDMA works is shown by the counters of the cards.
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
    description: Whether the adapters ping each other. One call for each adapter.
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
- name: See whether the RDMA adapters reach each other
  dml.vsphere.rdma_fabric_info:
    cluster: gpu
    switch: rdma
    ping: true
  register: fabric
  failed_when: fabric.pings | rejectattr('reached') | length > 0
"""

RETURN = r"""
fabric:
  description: What there is.
  returned: success
  type: dict
  contains:
    switch: {description: "C(mtu), and whether it is C(ours); V(null) where there is none.", type: dict}
    port_groups: {description: "By name the C(vlan), V(null) for a trunk, and whether it is C(ours).", type: dict}
    hosts:
      description:
        - By host the C(uplinks) it gives, its C(rdma) devices, its C(adapters) by port group, which of them and whether
          its membership were C(built) by this collection, and the adapter that is C(tagged) for PVRDMA.
      type: dict
    machines: {description: "The virtual machines on the port groups.", type: list, elements: dict}
pings:
  description: One entry for each pair of adapters that was asked.
  returned: success
  type: list
  elements: dict
  contains:
    port_group: {description: The port group., type: str}
    host: {description: The host that asked., type: str}
    device: {description: Its adapter., type: str}
    peer: {description: The host that was asked., type: str}
    address: {description: The address that was asked., type: str}
    size: {description: The payload of a packet in bytes., type: int}
    sent: {description: Packets sent., type: int}
    received: {description: Answers received., type: int}
    reached: {description: Whether every packet was answered., type: bool}
    text: {description: All that as one line., type: str}
    said: {description: What was said where there was no answer., type: str}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.fabric import reach
from ..module_utils.fabric.desired import Desired
from ..module_utils.fabric.fabric import Fabric
from ..module_utils.vsphere import session

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "switch": {"type": "str", "default": "rdma"},
    "ping": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    with session.session(module.params) as opened:
        fabric = Fabric(opened, Desired(module.params["cluster"], module.params["switch"]))
        found = fabric.info()
        adapters = {name: one["adapters"] for name, one in found["hosts"].items()}
        pairs = reach.pairs(adapters, list(found["port_groups"])) if module.params["ping"] else []
        pings = reach.ask(fabric.hosts, pairs)
    return {"changed": False, "fabric": found, "pings": pings}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
