#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a whole desired profile over many ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_profile
short_description: Bring ESXi hosts to a whole profile in one call
version_added: 1.0.0
description:
  - Plans, and applies, everything that a host should be in one call over many hosts.
    In check mode the result is the plan of every host, with the number of reboots that it needs and why.
  - One call applies what the running boot can take. What needs an earlier boot is left for the next call.
    The module itself never empties or reboots a host; M(dml.vsphere.esxi_power) does.
options:
  profile:
    description: What every host should be. Subjects that are not named are left alone.
    type: dict
    default: {}
    suboptions:
      passthrough:
        description: Which PCI devices are passed through, as M(dml.vsphere.esxi_passthrough) takes it.
        type: dict
        suboptions:
          devices:
            description: V(gpus) for all NVIDIA GPUs of a host, or PCI addresses, or both.
            type: list
            elements: str
            default: [gpus]
          enabled:
            description: Whether the devices are passed through.
            type: bool
            required: true
      vibs:
        description: Software packages, as M(dml.vsphere.esxi_vib) takes them.
        type: list
        elements: dict
        default: []
        suboptions:
          name: {description: The name of the VIB., type: str, required: true}
          version: {description: The version., type: str}
          source: {description: Where the host finds it., type: str}
          state:
            description: Whether it is installed.
            type: str
            choices: [present, absent]
            default: present
          install_timeout: {description: Seconds to wait for the host., type: int, default: 1800}
      graphics:
        description: How the GPUs are shared, as M(dml.vsphere.esxi_graphics) takes it.
        type: dict
        suboptions:
          type: {description: How GPUs are shared., type: str, choices: [shared, shared_direct]}
          policy: {description: How GPUs are chosen., type: str, choices: [performance, consolidation]}
          vgpu_mode: {description: Whether vGPUs of one GPU are equal., type: str, choices: [same_size, mixed_size]}
          restart_xorg: {description: Take a changed type without a boot., type: bool, default: false}
      kernel_modules:
        description: Options of kernel modules, as M(dml.vsphere.esxi_kernel_module) takes them.
        type: list
        elements: dict
        default: []
        suboptions:
          name: {description: The kernel module., type: str, required: true}
          options: {description: Its options and their values., type: dict, required: true}
          exact: {description: Whether to remove all options that are not named., type: bool, default: false}
      roce:
        description: Lossless RoCE, as M(dml.vsphere.esxi_roce) takes it.
        type: dict
        suboptions:
          priority: {description: The priority that must not be dropped., type: int, default: 3}
          trust:
            description: How a packet shows its priority.
            type: str
            choices: [dscp, pcp]
            default: dscp
          dscp: {description: The DSCP of RoCE traffic when O(profile.roce.trust=dscp)., type: int}
          state:
            description: Whether RoCE is lossless.
            type: str
            choices: [present, absent]
            default: present
          acknowledge_shared_nic:
            description: Whether to change the driver though others use its cards.
            type: bool
            default: false
      pvrdma:
        description: PVRDMA over a vmkernel adapter, as M(dml.vsphere.esxi_pvrdma) takes it.
        type: dict
        suboptions:
          vmk: {description: The vmkernel adapter., type: str}
          state:
            description: Whether PVRDMA is enabled.
            type: str
            choices: [present, absent]
            default: present
          close_firewall: {description: Whether V(absent) closes the firewall too., type: bool, default: true}
  host_profiles:
    description: Hosts that should be something else, each with a profile of its own in place of O(profile).
    type: dict
    default: {}
  adapters_to_come:
    description:
      - vmkernel adapters that M(dml.vsphere.rdma_fabric) builds before the profile is applied. Where one that
        O(profile.pvrdma) names is not there yet, it is planned with a warning in check mode, and refused otherwise.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: What would change, and how often must each host boot?
  dml.vsphere.esxi_profile:
    cluster: gpu
    profile:
      vibs:
        - name: NVD-AIE_ESXi_8.0.0_Driver
          version: 550.90.05
          source: "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip"
      graphics:
        type: shared_direct
      roce:
        priority: 3
      pvrdma:
        vmk: vmk1
  check_mode: true
  register: plan

- name: Show the hosts that need a reboot
  ansible.builtin.debug:
    msg: "{{ plan | community.general.json_query('hosts[?reboots > `0`].[host, reboots, why]') }}"
"""

RETURN = r"""
needs:
  description: What must happen until all hosts are in force.
  returned: success
  type: list
  elements: str
  sample: [maintenance, reboot]
hosts:
  description: One entry for each host.
  returned: always
  type: list
  elements: dict
  contains:
    host: {description: The host., type: str}
    changed: {description: Whether it was changed., type: bool}
    needs: {description: What must happen until the profile is in force., type: list, elements: str}
    reboots: {description: How often it must boot until then., type: int}
    why: {description: "Why, in words.", type: list, elements: str}
    unmet: {description: What prevents applying the rest right now., type: list, elements: str}
    state: {description: The state of every part., type: dict}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils import runner
from ..module_utils.cluster.lock import holder
from ..module_utils.errors import Refused
from ..module_utils.esxi import image, parts
from ..module_utils.esxi.profile import Profile
from ..module_utils.vsphere import fleet, session

ARGUMENTS = {
    "profile": {"type": "dict", "default": {}, "options": parts.OPTIONS, "apply_defaults": True},
    "host_profiles": {"type": "dict", "default": {}},
    "adapters_to_come": {"type": "list", "elements": "str", "default": []},
}


def own_profile(host: str, profile: dict[str, Any]) -> dict[str, Any]:
    checked = ArgumentSpecValidator(parts.OPTIONS).validate(profile)
    if checked.error_messages:
        raise Refused(f"host_profiles of {host}", "read it", "; ".join(checked.error_messages), "correct it")
    return dict(checked.validated_parameters)


def body(module: AnsibleModule) -> dict[str, Any]:
    params, to_come = module.params, module.params["adapters_to_come"]
    own = {host: own_profile(host, profile) for host, profile in params["host_profiles"].items()}
    with holder.at_work(), session.session(params) as opened:
        hosts = fleet.find(opened, params, parts.PATHS)
        wanted = {host.name: own.get(host.name, params["profile"]) for host in hosts.hosts}
        images = image.managed_clusters(opened) if any(one["vibs"] for one in wanted.values()) else {}
        watched = holder.watch()
        profiles = [
            Profile(host, parts.parts_of(host, wanted[host.name], images, to_come), watched) for host in hosts.hosts
        ]
        return runner.converge(module, runner.Work(subjects=profiles, refresh=hosts.refresh_for))


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **fleet.ARGUMENTS, **ARGUMENTS},
        supports_check_mode=True,
        required_one_of=fleet.EXACTLY_ONE,
        mutually_exclusive=fleet.EXACTLY_ONE,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
