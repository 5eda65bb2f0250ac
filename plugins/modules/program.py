#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the programs of roles. Its code is the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: program
short_description: Run a program of a role
version_added: 1.0.0
description:
  - The roles and playbooks of this collection call this module. Use the roles instead. The programs and their options
    can change with each version.
  - A program runs on the controller, and runs other modules there and on the nodes. Only V(conformance) changes
    vCenter and ESXi hosts.
  - The programs of the role P(dml.vsphere.training#role) have the options of the role. A controller that is killed
    leaves the job running. The same command finds the job and follows it.
  - The other programs call the reading modules of this collection, and make a plan, a verdict or a report of their
    results.
options:
  name:
    description:
      - V(conformance) runs the writing cases on a cluster that O(options) confirms, and compares its answers with those
        of the simulated data centre that tests this collection.
      - V(evidence) returns the state of a cluster, from which V(rollback) returns the profiles that restore its hosts.
      - V(preflight) decides whether the hosts of a cluster can be prepared, and V(teardown) lists what was built in a
        cluster.
      - V(report) writes the report on training runs.
      - V(vmotion_test) finds an unfinished vMotion test, and V(known_hosts) refuses names of hosts that do not exist.
      - V(mpi_operator_removal) returns which objects of the MPI Operator the role removes, and why others stay.
      - V(node_facts) refuses facts of the host that are named like variables of this collection or of a connection, as
        all programs do. With C(inject_facts_as_vars), such facts would take the place of these variables.
      - V(running_jobs) finds the training jobs that run on workers, and fails with their names if the play would stop
        them. It asks each worker with M(dml.vsphere.training_info), and vCenter for running workers that do not answer.
      - V(training_describe) returns how a node is reached, and runs on each node before the other programs of training.
      - V(training_train) runs a job and follows it to its end; V(training_start) only starts a job, and
        V(training_find) finds the only one. V(training_stop) stops a named run, and V(training_list) lists the runs.
      - V(training_logs), V(training_fetch) and V(training_exec) read the output and the files of a named run, or run a
        command in its folder. They ask only its nodes, V(training_logs) only its launcher.
      - V(training_request) checks the request of C(train) on the controller before a node is asked.
      - V(training_sweep) measures training with each number of nodes, and V(training_fabric_check) the bandwidth
        between all nodes.
    type: str
    choices:
      - conformance
      - evidence
      - known_hosts
      - mpi_operator_removal
      - node_facts
      - preflight
      - report
      - rollback
      - running_jobs
      - teardown
      - training_describe
      - training_exec
      - training_fabric_check
      - training_fetch
      - training_find
      - training_list
      - training_logs
      - training_request
      - training_start
      - training_stop
      - training_sweep
      - training_train
      - vmotion_test
    required: true
  options:
    description: The options of the program, as C(plugins/plugin_utils/role_programs.py) declares them.
    type: dict
    default: {}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
attributes:
  idempotent:
    description: A second run with the same options changes nothing.
    support: partial
    details: O(name=conformance) writes to the cluster and restores it on each run.
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the profiles that restore cluster gpu
  dml.vsphere.program:
    name: rollback
    options: {cluster: gpu, evidence: /var/lib/dml/evidence/gpu-20260101T120000Z.json}
  register: before

- name: Show the changes that would restore the hosts of cluster gpu
  dml.vsphere.esxi_profile:
    cluster: gpu
    host_profiles: "{{ before.profiles }}"
  check_mode: true
  diff: true
"""

RETURN = r"""
document:
  description: The state of the cluster; with V(conformance), the compared answers without names of the site.
  returned: with O(name=evidence), and with O(name=conformance) unless in check mode
  type: dict
error:
  description: The steps with different answers, and the objects that were not restored.
  returned: with O(name=conformance)
  type: str
profiles:
  description: The profile that restores each host, by host name, as O(dml.vsphere.esxi_profile#module:host_profiles).
  returned: with O(name=rollback)
  type: dict
image:
  description:
    - The options of M(dml.vsphere.esxi_image) that restore the image of the cluster; empty without a change of it.
  returned: with O(name=rollback)
  type: dict
shared_settings:
  description: The options of M(dml.vsphere.shared_settings) that restore vCenter and the cluster's DRS.
  returned: with O(name=rollback)
  type: dict
findings:
  description: All findings, stops first, each with C(severity), C(rule), C(object) and C(text).
  returned: with O(name=preflight)
  type: list
  elements: dict
stops:
  description: The findings that stop the work and are not accepted.
  returned: with O(name=preflight)
  type: list
  elements: dict
lines:
  description: The result as lines to show.
  returned: >-
    with O(name=conformance), O(name=preflight), O(name=teardown), O(name=report), and the lists and measurements of
    training
  type: list
  elements: str
refused:
  description: The reasons that prevent the work, as one error; empty if none exist.
  returned: with O(name=preflight) and O(name=teardown)
  type: str
files: {description: The paths of the files of a report., returned: with O(name=report), type: list, elements: str}
run: {description: "The name of the run, or of its last attempt.", returned: with O(name=training_train), type: str}
result:
  description: The result of the run.
  returned: with O(name=training_train), if the run was followed to its end
  type: dict
launcher:
  description: The node of rank 0.
  returned: with O(name=training_start), and with O(name=training_find) if a job runs
  type: str
run_dir:
  description: The run directory of the job.
  returned: with O(name=training_start), and with O(name=training_find) if a job runs
  type: str
nodes:
  description: The nodes to watch, each with C(name) and C(reach).
  returned: with O(name=training_start), and with O(name=training_find) if a job runs
  type: list
  elements: dict
asked:
  description: The results of M(dml.vsphere.training_info) by node.
  returned: with O(name=training_find)
  type: dict
why: {description: Why no job was found., returned: "with O(name=training_find), if no job runs", type: str}
job:
  description: The job around which hosts are changed; empty without one.
  returned: with O(name=running_jobs)
  type: dict
unread_error:
  description: Why running workers of the cluster count as busy; empty if the jobs of all are known.
  returned: with O(name=running_jobs)
  type: str
"""
