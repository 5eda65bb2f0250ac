#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the workers of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_vm_info
short_description: Find the worker VMs of a cluster by their mark
version_added: 1.0.0
description:
  - Reads the virtual machines with the mark of this collection, with a constant number of calls to vCenter.
  - The inventory plugin C(dml.vsphere.workers) returns the same machines as hosts for plays.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
  jobs:
    description:
      - The results of M(dml.vsphere.training_info) by the name of the node in the inventory, including those of
        failed tasks, to return RV(unread).
      - A node and a guest are the same machine if the name or the address of the node is a name or an address of the
        guest.
    type: dict
  addresses:
    description: The addresses with which Ansible connects to these nodes, by the name of the node in the inventory.
    type: dict
    default: {}
  names:
    description: Further virtual machines on the hosts of the cluster that RV(unread) may contain, without a mark.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.worker_vm
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the workers
  dml.vsphere.worker_vm_info:
    cluster: gpu
  register: found

- name: Delete the workers that this collection built
  dml.vsphere.worker_vm:
    cluster: gpu
    state: absent
    power_cycle: true
    workers: [{name: "{{ item }}"}]
  loop: "{{ found.workers | selectattr('vm_built') | map(attribute='name') }}"
"""

RETURN = r"""
workers:
  description: One entry for each worker, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The worker., type: str}
    ansible_host: {description: "Its address, if its guest reports one or its cloud-init data contains one.", type: str}
    vm_name: {description: "The name in vCenter, which differs if the worker was renamed.", type: str}
    vm_cluster: {description: The cluster in its mark., type: str}
    vm_role: {description: Its role., type: str}
    vm_tenant: {description: Its tenant., type: str}
    vm_built: {description: Whether this collection built it and the machine confirms that., type: bool}
    vm_confirmed: {description: Whether the machine itself confirms its mark., type: bool}
    vm_uuid: {description: Its instance UUID., type: str}
    vm_host: {description: The host that it is on., type: str}
    vm_power: {description: V(on) or V(off)., type: str}
    vm_tools: {description: Whether VMware Tools run in it., type: bool}
    vm_gpus: {description: Its GPUs., type: list, elements: str}
    vm_profiles: {description: The profiles of its vGPUs., type: list, elements: str}
    vm_rdma_macs: {description: The MAC addresses of its RDMA NICs., type: list, elements: str}
    vm_rdma_protocol: {description: The version of RoCE of a PVRDMA NIC., type: str}
    vm_rdma_classes:
      description: The device classes of its RDMA NICs with Enhanced DirectPath I/O.
      type: list
      elements: str
    vm_rdma_addresses: {description: The IPv4 addresses of its RDMA NICs., type: list, elements: str}
    vm_template:
      description: "The item of a content library of which it was made: library, item, id, version; V(null) for others."
      type: dict
    vm_foreign_disks:
      description: The files of the disks that are attached to it and that this collection did not create.
      type: list
      elements: str
unfinished: {description: Unmarked clones of a run that was killed., returned: success, type: list, elements: str}
unread:
  description:
    - The workers of the cluster, and guests of O(jobs) and O(names) on its hosts, that are not powered off and whose
      training jobs are unknown.
  returned: if O(jobs)
  type: list
  elements: dict
  contains:
    name: {description: The worker or the virtual machine., type: str}
    reason: {description: The reason why its training jobs are unknown., type: str}
    boots:
      description: The seconds for which it may still boot, and answer afterwards; 0 if it was not powered on recently.
      type: float
unread_error:
  description: A sentence with these guests, the reasons and the remedy; empty if there are none.
  returned: if O(jobs)
  type: str
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.vsphere import session
from ..module_utils.workers import existing_workers, unread_guests

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "jobs": {"type": "dict"},
    "addresses": {"type": "dict", "default": {}},
    "names": {"type": "list", "elements": "str", "default": []},
}


def unread(opened: session.Session, params: runner.Params) -> runner.Result:
    """Return the guests whose training jobs are unknown; empty without the option jobs."""
    if params["jobs"] is None:
        return {}
    nodes = unread_guests.nodes_of(params["jobs"], params["addresses"])
    guests = unread_guests.unread(unread_guests.read_guests(opened, params["cluster"]), nodes, params["names"])
    error = unread_guests.refusal(params["cluster"], guests)
    return {"unread": [guest._asdict() for guest in guests], "unread_error": error}


def body(module: AnsibleModule) -> runner.Result:
    cluster = module.params["cluster"]
    with session.session(module.params) as opened:
        left = existing_workers.unfinished_clones(opened, cluster)
        found = existing_workers.read_workers(opened, [cluster])
        return {"changed": False, "workers": found, "unfinished": left, **unread(opened, module.params)}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
