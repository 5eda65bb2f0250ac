#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the training jobs that a change would stop. Its code is the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: running_jobs
short_description: Refuse to stop running training jobs
version_added: 1.0.0
description:
  - Finds the training jobs that run on workers, and fails with their names if the play would stop them. It asks each
    worker with M(dml.vsphere.training_jobs_info), and vCenter for running workers that do not answer.
  - In a play on workers it asks the hosts of the play, as their user. In a play on clusters it asks all workers of the
    cluster in the inventory, as root, also those that the limit excludes.
  - In check mode no worker is asked, because no job is stopped.
options:
  cluster:
    description: The name of the cluster in vCenter. Empty in a play on workers.
    type: str
    default: ""
  guests:
    description: Virtual machines of the cluster without the mark of a worker that the change would stop.
    type: list
    elements: str
    default: []
  unread_is_idle:
    description: Whether a running worker whose training jobs cannot be read counts as idle.
    type: bool
    default: false
  ignored:
    description: A regular expression. A run whose name begins so is not refused.
    type: str
    default: ""
  interrupt:
    description: Whether jobs may be stopped.
    type: bool
    default: false
  remedies:
    description:
      - The ways out that the refusal names. V(wait) stands for C(training_wait) and the playbook C(dml.vsphere.stop).
      - V(under_training) and V(interrupt) are the options C(under_training=true) and C(interrupt_training=true).
    type: list
    elements: str
    choices: [wait, under_training, interrupt]
    default: []
  wait:
    description: For how many seconds to wait for the end of the jobs.
    type: int
    default: 0
  under_training:
    description: Whether hosts are changed around the job that the role P(dml.vsphere.training#role) has found.
    type: bool
    default: false
  around:
    description: The job around which hosts are changed instead, with O(under_training=true).
    type: dict
    default: {}
  windows:
    description:
      - The folder of maintenance windows. If one of the cluster is unfinished, O(under_training=true) needs no running
        job, because the window finishes its host and judges its job.
    type: path
    default: ""
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Refuse to shut down workers that train
  dml.vsphere.running_jobs:
    cluster: gpu
    interrupt: "{{ interrupt_training | default(false) }}"
    remedies: [interrupt]
"""

RETURN = r"""
job:
  description: The job around which hosts are changed; empty without O(under_training).
  returned: success
  type: dict
unread_error:
  description:
    - Why running workers of the cluster count as busy. It is empty if the jobs of all are known, and with
      O(unread_is_idle=true).
  returned: success
  type: str
"""
