#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the programs of the role training. Its code is the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training
short_description: Run a program of the role training
version_added: 1.0.0
description:
  - The role P(dml.vsphere.training#role) calls this module, and its options are those of the program. The module itself
    has only the name of the program and the connection to vCenter, from which it reads the RDMA counters of ESXi hosts.
  - It runs on the controller once for all nodes, and runs other modules on the nodes, each with the connection of its
    host.
  - A controller that is killed leaves the job running. The same command finds the job and follows it.
options:
  program:
    description:
      - V(describe) returns how a node is reached, and runs on each node before the other programs.
      - V(train) runs a job and follows it to its end; V(start) only starts a job, and V(find) finds the only one.
      - V(stop) stops a named run, and V(list) lists the runs.
      - V(sweep) measures training with each number of nodes, and V(fabric_check) the bandwidth between all nodes.
    type: str
    choices: [describe, fabric_check, find, list, start, stop, sweep, train]
    required: true
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Describe the nodes
  dml.vsphere.training:
    program: describe
  register: training_node

- name: List the training runs on the nodes and on the controller
  dml.vsphere.training:
    program: list
  run_once: true
"""

RETURN = r"""
run:
  description: The name of the run, or of its last attempt.
  returned: with O(program=train)
  type: str
result:
  description: The result of the run.
  returned: with O(program=train), if the run was followed to its end
  type: dict
launcher:
  description: The node of rank 0.
  returned: with O(program=start), and with O(program=find) if a job runs
  type: str
run_dir:
  description: The run directory of the job.
  returned: with O(program=start), and with O(program=find) if a job runs
  type: str
nodes:
  description: The nodes to watch, each with C(name) and C(reach).
  returned: with O(program=start), and with O(program=find) if a job runs
  type: list
  elements: dict
asked:
  description: The results of M(dml.vsphere.training_jobs_info) by node.
  returned: with O(program=find)
  type: dict
why:
  description: Why no job was found.
  returned: with O(program=find), if no job runs
  type: str
lines:
  description: The runs as a table, or the result of the measurement.
  returned: with O(program=list) and O(program=fabric_check)
  type: list
  elements: str
"""
