#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: take ESXi hosts out of service, boot them, and return them to service."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_power
short_description: Evacuate, reboot and return ESXi hosts to service
version_added: 1.0.0
description:
  - Puts hosts into maintenance mode, reboots them, and returns them to service, many in one call,
    with deadlines and with progress.
  - Before it changes anything, and in check mode too, the module reports for every host whether it I(can) be emptied,
    the virtual machines that would move, with their owners and the hosts that have room for them, those that must be
    powered off, and those that block the evacuation, with the reasons.
    Hosts of one call are planned together. If one of them cannot be emptied, a real run changes nothing.
  - The module records in the host's custom attribute C(dml.vsphere.maintenance) who took it out of service and when.
    A host that another user put into maintenance mode stays there.
  - Virtual machines of the services of vCenter, such as those of vSphere Cluster Services (vCLS), are neither moved nor
    reported. vCenter moves or stops them itself; those of 8.0 U3 and later cannot be migrated.
  - While another run, such as a maintenance window, holds the lock of the cluster (M(dml.vsphere.cluster_lock)), the
    module refuses to change its hosts.
  - Before a reboot, and before a host leaves maintenance mode, the module waits until no task runs on the host, such as
    the installation of a patch by another user.
  - The module continues a run that was killed. If a host is still entering maintenance mode or rebooting for this
    collection, the module waits for the host and does not repeat the request.
  - A host calculates its boot time from its clock. Two times that differ by at most 30 seconds are one boot, whose
    clock was corrected; a clock that jumps further looks like a boot, so keep the time services of hosts running.
options:
  state:
    description:
      - V(maintenance) empties the host and enters maintenance mode. If that does not end in time, the module cancels it
        and the host stays in service.
      - V(rebooted) boots a host that is in maintenance mode, and waits until it has disconnected, has connected again
        with a new boot time, and runs its services as before. Each run boots the host again.
      - V(in_service) leaves maintenance mode.
    type: str
    choices: [maintenance, rebooted, in_service]
    required: true
  maintenance_timeout:
    description: Seconds for emptying the host and entering maintenance mode, and for leaving maintenance mode.
    type: int
    default: 3600
  reboot_timeout:
    description: Seconds from the request of the reboot until the host runs its services again.
    type: int
    default: 1800
  moved_by:
    description:
      - Who moves the running virtual machines. V(drs) leaves the moves to DRS; the module refuses it if DRS would not
        make them.
        With V(module), the module moves them, those with a vGPU one after another.
    type: str
    choices: [drs, module]
    default: drs
  power_off:
    description:
      - Whether virtual machines that cannot move, because they own a device of the host (passthrough, SR-IOV), may be
        powered off. Their guests are shut down first; those that run longer than O(power_off_timeout) are powered off.
        They are not powered on again.
    type: bool
    default: false
  power_off_timeout: {description: Seconds that guests have to shut down., type: int, default: 300}
  vsan:
    description: The treatment of the vSAN data of a host that enters maintenance mode. It has no effect without vSAN.
    type: str
    choices: [ensure_accessibility, evacuate, no_action]
    default: ensure_accessibility
  non_disruptive:
    description:
      - Whether vCenter must evacuate a host that enters maintenance mode without disturbing its workloads.
      - Requires vCenter 9.1 or later.
    type: bool
    default: false
  services:
    description:
      - Services that must run after a reboot, such as V(ntpd), in addition to those that start with the host and ran
        before the reboot.
    type: list
    elements: str
    default: []
  boot_times:
    description:
      - "For V(rebooted): the boot that the reboot should end, by host, as M(dml.vsphere.esxi_profile) returns it. A
        host with another boot time has booted since then. The module does not reboot it again, and only waits until it
        serves."
    type: dict
    default: {}
  only_if_ours:
    description: Whether V(in_service) skips hosts that this collection did not take out of service.
    type: bool
    default: true
  take_over:
    description:
      - Hosts that another user put into maintenance mode, and that O(state=maintenance) treats as if this collection
        had done so. O(state=in_service) then returns them.
    type: list
    elements: str
    default: []
  rollout:
    description:
      - Whether a rollout takes the hosts out of service, as M(dml.vsphere.esxi_rollout) does.
      - If V(true), only hosts that a rollout took out of service are those of this collection. If V(false), the hosts
        belong to the user who runs the module, and rollouts and maintenance windows neither change nor return them.
    type: bool
    default: false
  each_alone:
    description:
      - For check mode. Reports for each host whether it could be emptied if no other one left service, with the same
        number of calls for all hosts as for one. Without check mode it is refused if a host would have to be emptied.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.progress
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
attributes:
  idempotent:
    description: A second run with the same options changes nothing.
    support: partial
    details: >-
      V(rebooted) reboots each time, unless an earlier run requested a reboot and did not wait for it, or
      O(boot_times) contains an earlier boot.
notes:
  - Free places for virtual GPUs are counted from the names of the profiles and the memory of the GPUs. vCenter
    decides, so a move can still fail; then the host stays in service and the error names the virtual machine.
seealso:
  - module: dml.vsphere.cluster_info
  - module: dml.vsphere.cluster_lock
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Check whether these hosts can be evacuated at the same time
  dml.vsphere.esxi_power:
    hosts: [esx01.example.com, esx02.example.com]
    state: maintenance
  check_mode: true
  register: emptying

- name: Show the virtual machines that block the evacuation
  ansible.builtin.debug:
    msg: "{{ emptying.hosts | map(attribute='state.evacuation.blocked') | flatten }}"

- name: Evacuate a host whose virtual machines DRS does not move
  dml.vsphere.esxi_power:
    hosts: [esx01.example.com]
    state: maintenance
    moved_by: module
    maintenance_timeout: 1800

- name: Reboot the host
  dml.vsphere.esxi_power:
    hosts: [esx01.example.com]
    state: rebooted

- name: Return the host to service
  dml.vsphere.esxi_power:
    hosts: [esx01.example.com]
    state: in_service
"""

RETURN = r"""
hosts:
  description: One entry for each host.
  returned: always
  type: list
  elements: dict
  contains:
    host: {description: The host., type: str}
    changed: {description: Whether its state was changed., type: bool}
    why: {description: "The effects of its evacuation, or why nothing had to be done.", type: list, elements: str}
    unmet: {description: The reasons that prevent its evacuation or reboot., type: list, elements: str}
    state:
      description: The state of the host; in check mode, its state after a real run.
      type: dict
      contains:
        maintenance: {description: Whether it is in maintenance mode., type: bool}
        ours: {description: Whether this collection put it there., type: bool}
        by: {description: "Who did, and since when.", type: str}
        boot_time: {description: When it booted; for V(rebooted)., type: str}
        reboot: {description: "V(due), V(asked for), V(under way) or V(done); for V(rebooted).", type: str}
        evacuation:
          description: The effects of its evacuation, for V(maintenance).
          type: dict
          contains:
            moves:
              description:
                - "Virtual machines that move: C(vm), C(folder), C(pool), C(owner), and C(to), a host with room."
              type: list
              elements: dict
            power_off:
              description: "Those that are powered off: C(vm), C(folder), C(pool), C(owner), C(why)."
              type: list
              elements: dict
            blocked:
              description: "Those that block: C(vm), C(folder), C(pool), C(owner), C(why)."
              type: list
              elements: dict
"""

from functools import partial

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.maintenance import host_power, service_options
from ..module_utils.maintenance.lock import holder, keeper, own_lock
from ..module_utils.vsphere import inventory, session
from ..module_utils.vsphere.arguments import require_positive

ARGUMENTS = {
    "state": {"type": "str", "choices": list(host_power.STATES), "required": True},
    "maintenance_timeout": {"type": "int", "default": 3600},
    "reboot_timeout": {"type": "int", "default": 1800},
    "moved_by": {"type": "str", "choices": list(host_power.MOVED_BY), "default": "drs"},
    "power_off": {"type": "bool", "default": False},
    "power_off_timeout": {"type": "int", "default": 300},
    "vsan": {"type": "str", "choices": list(service_options.VSAN), "default": "ensure_accessibility"},
    "non_disruptive": {"type": "bool", "default": False},
    "services": {"type": "list", "elements": "str", "default": []},
    "boot_times": {"type": "dict", "default": {}},
    "only_if_ours": {"type": "bool", "default": True},
    "each_alone": {"type": "bool", "default": False},
    "take_over": {"type": "list", "elements": "str", "default": []},
    "rollout": {"type": "bool", "default": False},
    **progress.ARGUMENTS,
}
TIMES = ("maintenance_timeout", "reboot_timeout", "power_off_timeout")
TUNING = (
    *TIMES,
    "moved_by",
    "power_off",
    "vsan",
    "non_disruptive",
    "boot_times",
    "only_if_ours",
    "each_alone",
    "take_over",
    "rollout",
)


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    require_positive(params, ["maintenance_timeout", "reboot_timeout"])
    with holder.marked(), session.session(params) as opened, keeper.renewing(opened):
        options = service_options.ServiceOptions(
            by=holder.owner(),
            services=tuple(params["services"]),
            report=progress.Progress(params["progress_file"]).report,
            run_lives=holder.run_watch(),
            require_free=partial(own_lock.require_free, opened),
            **{key: params[key] for key in TUNING},
        )
        work = host_power.work_on(inventory.find_hosts(opened, params, host_power.PATHS), params["state"], options)
        return runner.converge(module, runner.Work(subjects=work.subjects, refresh=work.refresh))


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
