#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the verdict on a cluster before its hosts are prepared. Its code is the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight_verdict
short_description: Judge whether the hosts of a cluster can be prepared
version_added: 1.0.0
description:
  - Judges the results of the modules that read a cluster, its hosts and the plan of the hosts. It runs on the
    controller and connects to nothing.
  - Each finding is a stop, a warning or a note about one object. The role C(preflight) fails on stops that are not
    accepted.
options:
  cluster:
    description: A result of M(dml.vsphere.cluster_info) with C(gather=[clocks, vms]).
    type: dict
    required: true
  hosts:
    description: A result of M(dml.vsphere.esxi_info) with C(fail_unreachable=false).
    type: dict
    required: true
  plan:
    description: A result of M(dml.vsphere.esxi_profile) in check mode, whether it failed or not.
    type: dict
    required: true
  emptying:
    description: Results of M(dml.vsphere.esxi_power) with C(state=maintenance) in check mode, even failed ones.
    type: list
    elements: dict
    default: []
  profile:
    description: The desired state of every host, as O(dml.vsphere.esxi_profile#module:profile).
    type: dict
    default: {}
  host_profiles:
    description: Hosts with a separate profile, as O(dml.vsphere.esxi_profile#module:host_profiles).
    type: dict
    default: {}
  gpu:
    description:
      - The expected model of every GPU, such as V(T4). A part of its name is enough; empty means any.
      - If hosts differ, a list of models, or a mapping of host names to a model or a list. A host without
        an entry may have any model.
    type: raw
    default: ""
  vgpu:
    description: The vGPU profile for which free slots are counted, such as V(grid_t4-16c); empty means none.
    type: str
    default: ""
  rdma_protocol:
    description: The version of RoCE of the workers' PVRDMA cards, V(rocev1) or V(rocev2); empty means any.
    type: str
    default: ""
  rdma_class:
    description: The device class of the workers' RDMA cards; empty if they use PVRDMA.
    type: str
    default: ""
  device_classes:
    description: The device classes of the workers' other devices.
    type: list
    elements: str
    default: []
  acceptance:
    description: RV(dml.vsphere.esxi_info#module:acceptance). Without it, the answers of the site are not judged.
    type: dict
    default: {}
  accepted:
    description: Rules, or RULE:OBJECT, of stops that are accepted.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.acceptance_info
  - module: dml.vsphere.cluster_info
  - module: dml.vsphere.esxi_info
  - module: dml.vsphere.esxi_profile
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the hosts of cluster gpu
  dml.vsphere.esxi_info:
    cluster: gpu
    fail_unreachable: false
    acceptance: true
  register: hosts

- name: Read cluster gpu
  dml.vsphere.cluster_info:
    cluster: gpu
    gather: [clocks, vms]
  register: cluster

- name: Plan the hosts of cluster gpu
  dml.vsphere.esxi_profile:
    cluster: gpu
    profile: {pvrdma: {vmk: vmk1}}
  check_mode: true
  failed_when: false
  register: plan

- name: Judge whether the hosts of cluster gpu can be prepared
  dml.vsphere.preflight_verdict:
    cluster: "{{ cluster }}"
    hosts: "{{ hosts }}"
    plan: "{{ plan }}"
    acceptance: "{{ hosts.acceptance }}"
    profile: {pvrdma: {vmk: vmk1}}
  register: verdict

- name: Show the findings
  ansible.builtin.debug:
    msg: "{{ verdict.lines }}"
"""

RETURN = r"""
findings:
  description: All findings, stops first.
  returned: success
  type: list
  elements: dict
  contains:
    severity: {description: "V(stop), V(warn) or V(note).", type: str}
    rule: {description: The rule with which a stop can be accepted., type: str}
    object: {description: The object., type: str}
    text: {description: The sentence., type: str}
stops:
  description: The findings that stop the work and are not accepted.
  returned: success
  type: list
  elements: dict
lines:
  description: The findings as lines to show.
  returned: success
  type: list
  elements: str
refused:
  description: The stops that are not accepted, as one error; empty if none exist.
  returned: success
  type: str
"""
