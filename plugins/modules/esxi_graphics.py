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
  - Sets the graphics type of the host B(and) of every NVIDIA GPU, which are separate settings in vSphere, and the
    assignment policy of GPUs, on many hosts in one call. Settings of other devices are kept.
  - The I(configured) settings can differ from the I(active) settings. A change takes effect when the host boots, or
    when Xorg restarts (O(restart_xorg)). If NVIDIA's C(nv-hostengine) runs on the host, it must be restarted as well; a
    boot restarts both.
  - The API reports the active type of each GPU, but not the active policy; the module records the old policy in the
    host's custom attribute C(dml.vsphere.pending) until the host boots.
  - The module does not change GPUs in passthrough, and names them in a warning.
  - The module reports MIG, but never switches it, because no vSphere API does so; RV(mig_procedure) has the steps.
options:
  type:
    description:
      - V(shared_direct) for vGPU (Shared Direct in the vSphere Client), V(shared) for the shared graphics of VMware.
    type: str
    choices: [shared, shared_direct]
  policy:
    description:
      - V(performance) spreads virtual machines over the GPUs, V(consolidation) fills one GPU before the next.
    type: str
    choices: [performance, consolidation]
  vgpu_mode:
    description: Whether vGPUs of one GPU must have the same size. Requires ESXi 8.0.3 or later.
    type: str
    choices: [same_size, mixed_size]
  restart_xorg:
    description:
      - Whether to restart Xorg, so that a changed type takes effect without a boot. The host must be in maintenance
        mode. A GPU without a loaded driver, or whose mode changes, still needs a boot.
      - Xorg is not restarted if the host needs a boot for another change of the same call.
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
    msg: "{{ item.host }}: {{ item.state.profiles }}"
  loop: "{{ graphics.hosts }}"
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
      description: The configured and the active settings, and the GPUs.
      type: dict
      contains:
        default_type: {description: The type of GPUs without a separate type., type: str}
        policy: {description: The configured assignment policy., type: str}
        active_policy: {description: The active policy., type: str}
        types: {description: The configured type by PCI address; null if a GPU has no separate type., type: dict}
        active_types:
          description: The active type by PCI address; V(basic) without a driver, V(direct) in passthrough.
          type: dict
        modes: {description: The configured vGPU mode by PCI address., type: dict}
        active_modes: {description: "The active vGPU mode by PCI address, including V(mig).", type: dict}
        gpus:
          description: "By PCI address: name, vendor, IDs, memory_mb, passthrough (off, pending, on), mig, vms."
          type: dict
        profiles: {description: The vGPU profiles that the host offers now., type: list, elements: str}
      sample:
        default_type: shared_direct
        policy: performance
        types: {"0000:3b:00.0": shared_direct}
        active_types: {"0000:3b:00.0": shared}
mig_procedure:
  description: The steps with which an administrator switches MIG on a host.
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
