#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: advanced options of ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_advanced_option
short_description: Set advanced options of ESXi hosts
version_added: 1.0.0
description:
  - Sets advanced options, which the vSphere Client calls advanced system settings, on many hosts in one call. Options
    that are not named keep their value.
  - Each host defines the type and the range of its options. Before it writes anything, the module refuses an unknown
    key, a value of another type and a value out of range on any host, and reports the values that the host allows.
  - ESXi reads the options whose keys begin with C(VMkernel.Boot) when it boots. The result has O(ignore:needs)
    V(reboot) until the host has booted. The API does not report the active value, so the module records it before a
    change in the host's custom attribute C(dml.vsphere.pending).
options:
  options:
    description:
      - The values of the options by their keys, such as C(Mem.ShareForceSalting). A value may be written as text.
      - V(Net.PVRDMAVmknic) is refused; M(dml.vsphere.esxi_pvrdma) sets it.
    type: dict
    required: true
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_kernel_module
  - module: dml.vsphere.esxi_profile
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Lock accounts of the hosts of cluster gpu after three failed logins
  dml.vsphere.esxi_advanced_option:
    cluster: gpu
    options:
      Security.AccountLockFailures: 3
      Security.AccountUnlockTime: 900

- name: Switch hyperthreading off, which takes effect when the hosts boot
  dml.vsphere.esxi_advanced_option:
    cluster: gpu
    options:
      VMkernel.Boot.hyperthreading: false
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
    state: {description: The values of the options by key., type: dict, sample: {Security.AccountLockFailures: 3}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.advanced_option import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
