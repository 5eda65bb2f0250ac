#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: PVRDMA on ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_pvrdma
short_description: Prepare ESXi hosts for paravirtual RDMA
version_added: 1.0.0
description:
  - Prepares many hosts for virtual machines with PVRDMA adapters in one call, and checks all settings together.
    The vmkernel adapter exists, is named in the host's option C(Net.PVRDMAVmknic), and the firewall ruleset C(pvrdma)
    is open. The addresses that the ruleset lets in are never changed.
  - PVRDMA falls back to TCP silently if its network is wrong, so the module checks the network before it writes
    anything. It refuses an unknown adapter, an adapter on a standard switch, a distributed switch whose only uplink on
    the host is not an RDMA card (also a second uplink, and teaming), an adapter with a greater MTU than its switch,
    and a version of ESXi without the option or the ruleset. Settings that work but are unwise cause a warning.
  - Changes take effect at once. A tag that is in use is not changed while virtual machines with a PVRDMA adapter run
    on the host.
options:
  vmk: {description: "The vmkernel adapter, such as V(vmk1). Required if O(state=present).", type: str}
  state:
    description:
      - V(present) tags the adapter and opens the firewall.
      - V(absent) removes the tag and, by default, closes the firewall.
    type: str
    choices: [present, absent]
    default: present
  close_firewall:
    description:
      - Whether O(state=absent) closes the ruleset C(pvrdma) too. Only PVRDMA uses the ruleset, and a new host closes
        it; set this to V(false) if another tool manages it.
    type: bool
    default: true
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_roce
  - module: community.vmware.vmware_vmkernel
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Let the virtual machines of a cluster use RDMA
  dml.vsphere.esxi_pvrdma:
    cluster: gpu
    vmk: vmk1
  register: pvrdma

- name: Show the RDMA device that each host uses for PVRDMA
  ansible.builtin.debug:
    msg: "{{ item.host }}: {{ item.state.uplink }}, {{ item.state.rdma_device }}"
  loop: "{{ pvrdma.hosts }}"
  loop_control: {label: "{{ item.host }}"}

- name: Remove the PVRDMA tag of one host, and leave its firewall open
  dml.vsphere.esxi_pvrdma:
    hosts: [esx05.lab]
    state: absent
    close_firewall: false
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
      description: The tag, the firewall, and for O(state=present) the checked path from the adapter to the uplink.
      type: dict
      sample:
        vmk: vmk1
        firewall_open: true
        vmk_mtu: 9000
        switch: rdma
        switch_mtu: 9000
        uplink: vmnic2
        rdma_device: vmrdma0
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.pvrdma import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
