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
  - Before hosts leave service, it reads the stop rules of M(dml.vsphere.cluster_info), and with O(job_check) the
    training jobs on the workers. It puts the hosts into maintenance mode, applies the profile, reboots them as often as
    needed, waits until the profile is active, and returns them to service.
  - If a step fails, the hosts stay in maintenance mode, and the next run continues there. A host that another user put
    into maintenance mode is neither changed nor rebooted.
  - The role P(dml.vsphere.esxi_host#role) uses this module, and first saves evidence for a rollback.
options:
  around_job:
    description: Whether only hosts that stay in service are changed; always with O(training).
    type: bool
    default: false
  plan_only:
    description: Whether the hosts are only planned. The task fails if a host cannot be changed now.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.roles.esxi_host
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
hosts: {description: The names of all planned hosts., returned: success, type: list, elements: str}
in_service: {description: The hosts that are changed and stay in service., returned: success, type: list, elements: str}
leaving:
  description: The hosts that leave service to be changed, starting with those that are already out of service.
  returned: success
  type: list
  elements: str
window:
  description: The option C(window) of M(dml.vsphere.vmotion_test), with the hosts of RV(leaving).
  returned: success
  type: dict
after_canary: {description: How a run that changes only the canary continues., returned: success, type: str}
"""
