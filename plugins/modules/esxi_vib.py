#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: VIBs of ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_vib
short_description: Install or remove a VIB on ESXi hosts
version_added: 1.0.0
description:
  - Installs a VIB, such as NVIDIA's vGPU manager or its GPU management daemon, on many hosts in one call, with esxcli
    over the vSphere API; it needs neither SSH nor a shell.
  - Distinguishes the I(running) version from the version of the I(next boot). A VIB that already waits for a boot is
    not installed again; the result has O(ignore:needs) V(reboot).
  - Before anything is written, even in check mode, the host rehearses the change (C(--dry-run)). The module refuses the
    change if the source cannot be read, does not contain that name and version, or is not signed for the host's
    acceptance level.
  - Signatures protect the host. They are always checked, and this module can lower neither the acceptance level nor the
    checks. The host downloads a URL itself and cannot compare a checksum, so there is no option for one.
  - The host must be in maintenance mode; check mode reports this in RV(hosts[].unmet), a real run refuses the change.
  - The module refuses NVIDIA's VIBs while a GPU of the host is in passthrough, and every VIB if an image manages the
    cluster, because vLCM would undo the change.
options:
  name:
    description: The name of the VIB, as C(esxcli software vib list) shows it, such as V(NVD-AIE_ESXi_8.0.0_Driver).
    type: str
    required: true
  version:
    description:
      - The version. A version without its build, such as V(550.90.05), means any build of it.
      - Required if O(state=present).
    type: str
  source:
    description:
      - The location of the VIB, as an offline bundle (C(.zip)), a single package (C(.vib)), or the URL of a depot's
        C(index.xml).
      - Written as V([datastore] folder/file.zip), as V(/vmfs/volumes/datastore/folder/file.zip), or as an http(s) URL.
      - Required if O(state=present).
    type: str
  state: {description: Whether the VIB is installed., type: str, choices: [present, absent], default: present}
  install_timeout: {description: Seconds to wait for the host to install or remove it., type: int, default: 1800}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_image
  - module: dml.vsphere.esxi_passthrough
  - module: dml.vsphere.esxi_graphics
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Plan the installation of the vGPU manager on each host
  dml.vsphere.esxi_vib:
    cluster: gpu
    name: NVD-AIE_ESXi_8.0.0_Driver
    version: 550.90.05-1OEM.800.1.0.20613240
    source: "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip"
  check_mode: true
  register: vib

- name: Show the hosts that still need a boot
  ansible.builtin.debug:
    msg: "{{ vib.hosts | selectattr('needs', 'contains', 'reboot') | map(attribute='host') }}"

- name: Remove the management daemon from a host in maintenance mode
  dml.vsphere.esxi_vib:
    hosts: [esx01.example.com]
    name: nvdgpumgmtdaemon
    state: absent
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
      description: The VIB on this host.
      type: dict
      contains:
        running: {description: The running version., type: str}
        next_boot: {description: The version after the next boot., type: str}
        others: {description: Other vGPU managers that are installed., type: list, elements: str}
        gpus_in_passthrough: {description: PCI addresses of GPUs in passthrough., type: list, elements: str}
        gpus_without_driver: {description: "The GPUs, if none of them has a driver.", type: list, elements: str}
        image_of: {description: "The cluster, if an image manages it.", type: str}
        rehearsal: {description: "The VIBs that the change installs and removes, and the need of a boot.", type: dict}
      sample: {running: null, next_boot: 550.90.05-1OEM.800.1.0.20613240}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.vib import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
