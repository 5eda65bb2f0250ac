#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: lossless RoCE on ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_roce
short_description: Make RoCE traffic of ESXi hosts lossless
version_added: 1.0.0
description:
  - Turns on priority flow control for one priority and marks RoCE traffic with it, using the driver options of the
    hosts' RDMA cards, on many hosts in one call. Other options of the driver keep their values.
  - The module detects the driver. For C(nmlx5_core) (ConnectX-4 and later), the options are C(pfctx), C(pfcrx) and
    C(trust_state), and C(dscp_force) or C(pcp_force) of C(nmlx5_rdma). For C(nmlx4_en) (ConnectX-3), they are C(pfctx)
    and C(pfcrx), with O(trust=pcp) only.
  - Driver options take effect only when the host boots, so the result has O(ignore:needs) V(reboot) until then.
    Set the switch first; RV(switch) returns its settings.
  - Afterwards, the module reads the DCB status of the cards into RV(hosts[].state). It only shows the host's side.
options:
  priority:
    description: The priority (802.1p, 0 to 7) of the traffic that must not be dropped.
    type: int
    default: 3
  trust:
    description:
      - The mark of a packet's priority. V(dscp) uses the IP header. V(pcp) uses the VLAN tag, so the port groups of the
        RDMA switch need a VLAN; the module refuses it if none of them has a VLAN.
    type: str
    choices: [dscp, pcp]
    default: dscp
  dscp:
    description:
      - The DSCP (0 to 63) of RoCE traffic if O(trust=dscp).
        Cards and switches read the priority from its three upper bits, so O(dscp) divided by 8 must be O(priority).
      - The default is the priority times 8 plus 2, which is V(26) for priority 3.
    type: int
  state:
    description: V(absent) removes the options that this module sets, and no others.
    type: str
    choices: [present, absent]
    default: present
  acknowledge_shared_nic:
    description:
      - The options of a driver apply to all its ports in a host. The module refuses a change while vSAN, NVMe over RDMA
        or iSER uses the RDMA cards, unless this is V(true).
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_kernel_module
  - module: dml.vsphere.esxi_pvrdma
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Make RoCE lossless on priority 3, with DSCP 26
  dml.vsphere.esxi_roce:
    cluster: gpu
    priority: 3
    trust: dscp
    dscp: 26
  register: roce

- name: Show the settings that the switches need
  ansible.builtin.debug:
    msg: "{{ roce.switch.onyx.splitlines() }}"

- name: Show the priorities with flow control of each card
  ansible.builtin.debug:
    msg: "{{ item.host }}: {{ item.state.pfc }}"
  loop: "{{ roce.hosts }}"
  loop_control: {label: "{{ item.host }}"}
"""

RETURN = r"""
needs:
  description: The needs of the hosts until the change takes effect on all of them.
  returned: success
  type: list
  elements: str
  sample: [reboot]
hosts:
  description: One entry for each host.
  returned: always
  type: list
  elements: dict
  contains:
    host: {description: The name of the host., type: str}
    changed: {description: Whether the host was changed., type: bool}
    needs: {description: The needs of the host until the change takes effect., type: list, elements: str}
    reboots: {description: The number of boots until then., type: int}
    why: {description: The reasons for these needs., type: list, elements: str}
    unmet: {description: The reasons why the change cannot be made now., type: list, elements: str}
    warnings: {description: Settings that work but are unwise., type: list, elements: str}
    state:
      description: The configured and the active options of each module, and the DCB status of the cards.
      type: dict
      contains:
        active: {description: The active options since the last boot., type: dict}
        pfc:
          description: "By card, the priorities with flow control now; null if its driver does not report any."
          type: dict
        pfc_unknown: {description: "By card, why RV(hosts[].state.pfc) is null; otherwise empty.", type: dict}
        dcbx:
          description:
            - By card, the mode of DCBX, with which a switch may set flow control from ESXi 7 on, and whether the card
              is willing to adopt that; null if the card does not report it.
          type: dict
        cards: {description: "The RDMA cards, with their drivers.", type: dict}
        users: {description: The other users of the RDMA cards., type: list, elements: dict}
      sample:
        nmlx5_core: {pfctx: "0x08", pfcrx: "0x08", trust_state: "2"}
        nmlx5_rdma: {dscp_force: "26"}
        active: {nmlx5_core: {}, nmlx5_rdma: {}}
        cards: {vmnic2: nmlx5_core}
        pfc: {vmnic2: []}
        pfc_unknown: {vmnic2: ""}
        dcbx: {vmnic2: {mode: ieee, willing: true}}
        users: []
switch:
  description: The settings for the switches between the hosts. This module never changes a switch.
  returned: when O(state=present)
  type: dict
  contains:
    generic: {description: In words., type: str}
    onyx: {description: "Commands of Mellanox Onyx; PORTS stands for the ports to hosts and switches.", type: str}
note: {description: "The limits of RV(hosts[].state).", returned: always, type: str}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.roce import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
