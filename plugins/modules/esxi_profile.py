#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: apply a complete profile to many ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_profile
short_description: Apply a complete profile to ESXi hosts in one call
version_added: 1.0.0
description:
  - Plans and applies all settings of a profile on many hosts in one call.
    In check mode, the result is the plan of every host, with the number of reboots that it needs and the reasons.
  - One call applies the settings that can be changed before the next boot. Settings that need an earlier boot remain
    for the next call. The module never empties or reboots a host; M(dml.vsphere.esxi_power) does.
options:
  adapters_to_come:
    description:
      - vmkernel adapters that M(dml.vsphere.rdma_fabric) creates before the profile is applied. If O(profile.pvrdma)
        names one that does not exist yet, the module plans it with a warning in check mode, and refuses it otherwise.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.subjects
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Plan the profile of the hosts of cluster gpu
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
    msg: "{{ item.host }}: {{ item.why }}"
  loop: "{{ plan.hosts | selectattr('reboots', 'gt', 0) }}"
  loop_control: {label: "{{ item.host }}"}
"""

RETURN = r"""
needs:
  description: The needs of the hosts until the settings are in force on all of them.
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
    changed: {description: Whether the host was changed., type: bool}
    needs: {description: The needs of the host until the profile takes effect., type: list, elements: str}
    reboots: {description: The number of boots until then., type: int}
    why: {description: The reasons for these needs., type: list, elements: str}
    unmet: {description: The reasons why the rest cannot be applied now., type: list, elements: str}
    state: {description: The state of every part., type: dict}
    boot_time: {description: When the host booted., type: str}
    out_of_service:
      description: Whether the host is unreachable or in maintenance mode, or an earlier run left a note on it.
      type: bool
    in_maintenance: {description: Whether the host is in maintenance mode., type: bool}
"""

from functools import cache, partial

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.hosts import cluster_image, profile
from ..module_utils.hosts.part import ProfileContext
from ..module_utils.maintenance import service_note
from ..module_utils.maintenance.lock import holder, keeper
from ..module_utils.vsphere import arguments, inventory, session

ARGUMENTS = {**profile.ARGUMENTS, "adapters_to_come": {"type": "list", "elements": "str", "default": []}}

OF_HOST = (*service_note.PATHS, "runtime.bootTime")


def body(module: AnsibleModule) -> runner.Result:
    params, shared = module.params, module.params["profile"]
    own = arguments.by_name("host_profiles", profile.OPTIONS, params["host_profiles"])
    with holder.marked(), session.session(params) as opened, keeper.renewing(opened):
        hosts = inventory.find_hosts(opened, params, (*profile.paths([shared, *own.values()]), *OF_HOST))
        images, run_lives = cache(partial(cluster_image.managed_clusters, opened)), holder.run_watch()
        profiles = []
        for host in hosts.hosts:
            context = ProfileContext(own.get(host.name, shared), params["adapters_to_come"], images)
            profiles.append(profile.Profile(host, profile.members_of(host, context), run_lives))
        result = runner.converge(module, runner.Work(subjects=profiles, refresh=hosts.refresh_for))
        for host, report in zip(hosts.hosts, result["hosts"]):
            report.update(_service_of(host))
        return result


def _service_of(host: inventory.Host) -> dict[str, object]:
    is_out = service_note.is_out_of_service(host)
    return {"out_of_service": is_out, "in_maintenance": host.in_maintenance, "boot_time": host.boot_time}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **inventory.ARGUMENTS, **ARGUMENTS},
        supports_check_mode=True,
        required_one_of=inventory.EXACTLY_ONE,
        mutually_exclusive=inventory.EXACTLY_ONE,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
