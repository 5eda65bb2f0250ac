#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: options of an ESXi kernel module."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_kernel_module
short_description: Set options of a kernel module on ESXi hosts
version_added: 1.0.0
description:
  - Merges options into the option string of one kernel module on many hosts in one call.
    Options that are not named keep their value and their position;
    numbers are compared as numbers, so V(8) equals V(0x08).
  - Module options take effect only when ESXi boots. The result has both the I(configured) and the I(active) options,
    and O(ignore:needs) V(reboot) until the host has booted. The API does not report the active options, so the module
    records them before a change in the host's custom attribute C(dml.vsphere.pending).
options:
  name: {description: "The kernel module, such as V(nmlx5_core).", type: str, required: true}
  options:
    description:
      - The options and their values. A boolean becomes V(1) or V(0), a list becomes its items separated by commas.
    type: dict
    required: true
  exact: {description: Whether to remove all options that are not named., type: bool, default: false}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_roce
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Set eight virtual functions on each port of the network driver
  dml.vsphere.esxi_kernel_module:
    cluster: gpu
    name: nmlx5_core
    options:
      max_vfs: [8, 8]

- name: Show the hosts that still need a reboot
  ansible.builtin.debug:
    msg: "{{ result.hosts | selectattr('needs', 'contains', 'reboot') | map(attribute='host') }}"
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
      description: The configured and the active options.
      type: dict
      sample: {options: {pfctx: "0x08"}, active: {}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.kernel_module import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
