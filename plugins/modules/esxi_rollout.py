#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a profile on the hosts of a cluster, a few at a time. Its code is the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_rollout
short_description: Apply a profile to the hosts of a cluster, a few at a time
version_added: 1.0.0
description:
  - Plans all hosts of a cluster with M(dml.vsphere.esxi_profile) and shows the plan. Then it changes the hosts that
    differ while it holds the lock of the cluster. Hosts that need no maintenance mode stay in service. The others leave
    service, O(max_out_of_service) at a time.
  - Before hosts leave service, it reads the stop rules of M(dml.vsphere.cluster_info). It puts the hosts into
    maintenance mode, applies the profile, reboots them as often as needed, waits until the profile is active, and
    returns them to service.
  - If a step fails, the hosts stay in maintenance mode, and the next run continues there. A host that another user put
    into maintenance mode is neither changed nor rebooted.
  - The role P(dml.vsphere.esxi_host#role) uses this module, and first saves evidence for a rollback.
options:
  cluster:
    description: The name of the cluster.
    type: str
    required: true
  hosts:
    description: Only these hosts of the cluster; empty means all hosts.
    type: list
    elements: str
    default: []
  profile:
    description: The desired state of every host, as O(dml.vsphere.esxi_profile#module:profile).
    type: dict
    default: {}
  host_profiles:
    description: Hosts with a separate profile, as O(dml.vsphere.esxi_profile#module:host_profiles).
    type: dict
    default: {}
  adapters_to_come:
    description: Vmkernel adapters that need not exist yet in check mode.
    type: list
    elements: str
    default: []
  canary:
    description: The host that is changed first, and the only one until O(continue_after_canary) is true.
    type: str
    default: ""
  continue_after_canary:
    description: Whether the other hosts are changed after the canary.
    type: bool
    default: false
  max_out_of_service:
    description:
      - The number of hosts that may be out of service at once, including hosts that others took out of service. The
        module changes fewer hosts at once if the cluster cannot spare that many.
    type: int
    default: 1
  maintenance_timeout:
    description: Seconds for emptying a host and entering maintenance mode.
    type: int
    default: 3600
  reboot_timeout:
    description: Seconds from the request of a reboot until the host runs its services again.
    type: int
    default: 1800
  power_off:
    description: Whether virtual machines that cannot move may be powered off, as in M(dml.vsphere.esxi_power).
    type: bool
    default: false
  moved_by:
    description: The mover of the running virtual machines, as in M(dml.vsphere.esxi_power).
    type: str
    choices: [drs, module]
    default: drs
  non_disruptive:
    description: Whether vCenter must evacuate hosts without disturbing their workloads. It requires vCenter 9.1.
    type: bool
    default: false
  accepted_stops:
    description: >-
      Stop rules that do not stop, or RULE:OBJECT to accept a rule for one object. M(dml.vsphere.cluster_info) lists
      the rules.
    type: list
    elements: str
    default: []
  take_over:
    description:
      - Hosts that another user put into maintenance mode, and that are changed, rebooted and returned to service
        nevertheless. Others are neither changed nor rebooted.
    type: list
    elements: str
    default: []
  lock_ttl:
    description: Seconds until the lock of the cluster expires. The module renews it before hosts leave service.
    type: int
    default: 7200
  image:
    description:
      - The options of M(dml.vsphere.esxi_image) without its cluster and hosts. The image of the cluster is set, and
        vLCM applies it to each emptied host before its profile. Empty means that no image is applied.
    type: dict
    default: {}
  force_unlock:
    description: Whether the lock is taken from another run. Use this only if that run has certainly ended.
    type: bool
    default: false
  refusal:
    description: A sentence with which the task refuses to change hosts. It has no effect if no host differs.
    type: str
    default: ""
  window:
    description:
      - The options of a maintenance window, which RV(window) contains too. Without O(around_job), a
        change of hosts with one of them is refused.
    type: dict
    default: {}
  around_job:
    description: Whether only hosts that stay in service are changed, because a training job runs on the others.
    type: bool
    default: false
  plan_only:
    description: Whether the hosts are only planned. The task fails if a host cannot be changed now.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
attributes:
  check_mode:
    description: Can run in check mode and predict changes without making them.
    support: partial
    details: Check mode needs O(plan_only); without it, check mode skips the task.
seealso:
  - module: dml.vsphere.esxi_power
  - module: dml.vsphere.esxi_profile
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Show the plan of cluster gpu
  dml.vsphere.esxi_rollout:
    cluster: gpu
    profile:
      kernel_modules:
        - name: nmlx5_core
          options: {max_vfs: 8}
    plan_only: true
  check_mode: true

- name: Change the hosts of cluster gpu, two at a time
  dml.vsphere.esxi_rollout:
    cluster: gpu
    profile:
      kernel_modules:
        - name: nmlx5_core
          options: {max_vfs: 8}
    max_out_of_service: 2
"""

RETURN = r"""
hosts:
  description: The names of all planned hosts.
  returned: success
  type: list
  elements: str
in_service:
  description: The hosts that are changed and stay in service.
  returned: success
  type: list
  elements: str
leaving:
  description: The hosts that leave service to be changed, starting with those that are already out of service.
  returned: success
  type: list
  elements: str
window:
  description: The option C(window) of M(dml.vsphere.vmotion_test), with the hosts of RV(leaving).
  returned: success
  type: dict
after_canary:
  description: How a run that changes only the canary continues.
  returned: success
  type: str
"""
