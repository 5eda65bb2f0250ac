#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: how GPUs are shared."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_graphics
short_description: Share the GPUs of ESXi hosts between virtual machines
version_added: 1.0.0
description:
  - Sets the graphics type of the host B(and) of every NVIDIA GPU, which vSphere keeps apart, and the policy by which
    GPUs are assigned, on many hosts in one call. Settings of other devices are kept.
  - What is I(configured) is not what is I(active). A change is taken when the host boots, or when Xorg restarts
    (O(restart_xorg)). Where NVIDIA's C(nv-hostengine) runs on the host, it must be restarted as well; a boot does both.
  - The API tells the active type of each GPU, but not the policy in use; the module notes the old policy in the host's
    custom attribute C(dml.vsphere.pending) until the host boots.
  - GPUs in passthrough are left alone and named in a warning.
  - MIG is read and reported, never switched, because no vSphere API does it; RV(mig_procedure) says how.
options:
  type:
    description:
      - V(shared_direct) for vGPU (the vSphere Client says Shared Direct), V(shared) for VMware's own shared graphics.
    type: str
    choices: [shared, shared_direct]
  policy:
    description:
      - V(performance) spreads virtual machines over the GPUs, V(consolidation) fills one GPU before the next.
    type: str
    choices: [performance, consolidation]
  vgpu_mode:
    description: Whether vGPUs of one GPU must have the same size. ESXi 8.0.3 or later.
    type: str
    choices: [same_size, mixed_size]
  restart_xorg:
    description:
      - Restart Xorg to take a changed type without a boot. The host must be in maintenance mode.
        A GPU that no driver runs yet, or whose mode changes, still needs a boot.
      - Xorg is not restarted where the host needs a boot for anything else of the same call, which is enough.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_vib
  - module: dml.vsphere.esxi_passthrough
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Share all GPUs of cluster gpu as vGPU and fill one GPU before the next
  dml.vsphere.esxi_graphics:
    cluster: gpu
    type: shared_direct
    policy: consolidation
  register: graphics

- name: Show the vGPU profiles that each host offers
  ansible.builtin.debug:
    msg: "{{ graphics | community.general.json_query('hosts[].{host: host, profiles: state.profiles}') }}"
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
      description: The settings, as configured and as active, and the GPUs.
      type: dict
      contains:
        default_type: {description: The type of GPUs that have none of their own., type: str}
        policy: {description: The configured assignment policy., type: str}
        active_policy: {description: The policy in use., type: str}
        types: {description: The configured type by PCI address; null where a GPU has none of its own., type: dict}
        active_types:
          description: The type in use by PCI address; V(basic) without a driver, V(direct) in passthrough.
          type: dict
        modes: {description: The configured vGPU mode by PCI address., type: dict}
        active_modes: {description: "The vGPU mode in use by PCI address, V(mig) among them.", type: dict}
        gpus:
          description: "By PCI address: name, vendor, ids, memory_mb, passthrough (off, pending, on), mig, vms."
          type: dict
        profiles: {description: The vGPU profiles that the host offers now., type: list, elements: str}
      sample:
        default_type: shared_direct
        policy: performance
        types: {"0000:3b:00.0": shared_direct}
        active_types: {"0000:3b:00.0": shared}
mig_procedure:
  description: The steps by which a person switches MIG on a host.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.hosts import subject_module
from ..module_utils.hosts.graphics import PART


def main() -> None:
    subject_module.run(AnsibleModule(**subject_module.arguments(PART)), PART)


if __name__ == "__main__":
    main()
