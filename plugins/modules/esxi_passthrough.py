#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: passthrough of PCI devices."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_passthrough
short_description: Pass PCI devices of ESXi hosts through to virtual machines, or return them to the host
version_added: 1.0.0
description:
  - Switches DirectPath I/O passthrough of GPUs, or of devices named by their PCI address, on many hosts in one call.
  - On most hosts, the change takes effect only when they boot. The result has the I(enabled) and the I(active) devices,
    and O(ignore:needs) V(reboot) until both agree. A host that can rebind devices without a boot does so at once.
  - A GPU is either passed through or shared as vGPU. A host that goes from passthrough to vGPU boots twice, because
    NVIDIA's VIB must not be installed while a GPU is in passthrough.
options:
  devices:
    description:
      - V(gpus) for all NVIDIA GPUs of a host, or PCI addresses such as V(0000:3b:00.0), or both.
    type: list
    elements: str
    default: [gpus]
  enabled: {description: Whether the devices are passed through., type: bool, required: true}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_vib
  - module: dml.vsphere.esxi_graphics
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Pass every GPU of the cluster through to virtual machines
  dml.vsphere.esxi_passthrough:
    cluster: a100
    enabled: true
  register: passthrough

- name: Return a network card to its host
  dml.vsphere.esxi_passthrough:
    hosts: [esx01.example.com]
    devices: ["0000:5e:00.0"]
    enabled: false

- name: Show the hosts that must boot for the passthrough
  ansible.builtin.debug:
    msg: "{{ passthrough.hosts | selectattr('reboots', 'gt', 0) | map(attribute='host') }}"
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
      description: The chosen devices by PCI address.
      type: dict
      contains:
        enabled: {description: Passthrough as configured., type: dict}
        active: {description: Passthrough since the last boot., type: dict}
        devices: {description: "Name, vendor, IDs, whether it can be passed through, and its users.", type: dict}
        without_reboot: {description: Whether the host can rebind devices without a boot., type: bool}
      sample: {enabled: {"0000:3b:00.0": true}, active: {"0000:3b:00.0": false}, without_reboot: false}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.passthrough import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
