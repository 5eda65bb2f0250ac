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
  - Turns on priority flow control for one priority and marks RoCE traffic with it, by the options of the driver of the
    host's RDMA cards, on many hosts in one call. Options of the driver that are not about this keep their values.
  - The driver is found on the host. For C(nmlx5_core) (ConnectX-4 and later) these are C(pfctx), C(pfcrx) and
    C(trust_state), and C(dscp_force) or C(pcp_force) of C(nmlx5_rdma). For C(nmlx4_en) (ConnectX-3) they are C(pfctx)
    and C(pfcrx), with O(trust=pcp) only.
  - Drivers take their options only when the host boots, so the result says O(ignore:needs) V(reboot) until then.
    Set the switch first; RV(switch) returns its settings.
  - Afterwards the cards' DCB status is read into RV(hosts[].state). It shows the host's side only.
options:
  priority:
    description: The priority (802.1p, 0 to 7) of the traffic that must not be dropped.
    type: int
    default: 3
  trust:
    description:
      - How a packet shows its priority. V(dscp) is by its IP header. V(pcp) is by its VLAN tag, so the port groups of
        the RDMA switch need a VLAN; this is refused where none of them has one.
    type: str
    choices: [dscp, pcp]
    default: dscp
  dscp:
    description:
      - The DSCP (0 to 63) that RoCE traffic is marked with when O(trust=dscp).
        Cards and switches read the priority from its three upper bits, so O(dscp) divided by 8 must be O(priority).
      - Without it, the priority times 8 plus 2 is taken, which is V(26) for priority 3.
    type: int
  state:
    description: V(absent) removes the options that this module sets, and no others.
    type: str
    choices: [present, absent]
    default: present
  acknowledge_shared_nic:
    description:
      - Options of a driver act on all its ports in a host. A change is refused while vSAN, NVMe over RDMA or iSER is
        found on the RDMA cards, unless this is V(true).
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
- name: Make RoCE lossless on priority 3, which DSCP 26 shows
  dml.vsphere.esxi_roce:
    cluster: gpu
    priority: 3
    trust: dscp
    dscp: 26
  register: roce

- name: Show the settings that the switches need
  ansible.builtin.debug:
    msg: "{{ roce.switch.onyx.splitlines() }}"

- name: Show the priorities on which each card does flow control
  ansible.builtin.debug:
    msg: "{{ roce | community.general.json_query('hosts[].[host, state.pfc]') }}"
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
      description: The options of each module as configured and as active, and what the cards say.
      type: dict
      contains:
        active: {description: The options in use since the last boot., type: dict}
        pfc:
          description: "By card, the priorities on which it does flow control now; null where its driver tells none."
          type: dict
        pfc_unknown: {description: "By card, why RV(hosts[].state.pfc) is null; else empty.", type: dict}
        dcbx:
          description:
            - By card, the mode of DCBX, through which a switch may set flow control from ESXi 7 on, and whether the
              card is willing to take that over; null is what the card does not tell.
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
  description: The settings of the switches between the hosts. This module never touches a switch.
  returned: when O(state=present)
  type: dict
  contains:
    generic: {description: In words., type: str}
    onyx: {description: "For Mellanox Onyx, with PORTS for the ports of the hosts and between switches.", type: str}
note:
  description: The limits of RV(hosts[].state).
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.roce import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
