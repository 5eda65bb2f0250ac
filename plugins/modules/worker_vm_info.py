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
  cluster:
    description: Name of the cluster.
    type: str
    required: true
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
    workers: "{{ found | community.general.json_query('workers[?vm_built].{name: name}') }}"
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
    vm_built: {description: Whether this collection built it., type: bool}
    vm_uuid: {description: Its instance UUID., type: str}
    vm_host: {description: The host that it is on., type: str}
    vm_power: {description: V(on) or V(off)., type: str}
    vm_gpus: {description: Its GPUs., type: list, elements: str}
    vm_profiles: {description: The profiles of its vGPUs., type: list, elements: str}
    vm_rdma_mac: {description: The MAC address of its RDMA NIC., type: str}
    vm_rdma_protocol: {description: The version of RoCE of a PVRDMA NIC., type: str}
    vm_rdma_class: {description: The device class of an RDMA NIC with Enhanced DirectPath I/O., type: str}
    vm_rdma_address: {description: The IPv4 address of its RDMA NIC., type: str}
unfinished:
  description: Unmarked clones of a run that was killed.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.vsphere import session
from ..module_utils.workers import existing_workers

ARGUMENTS = {"cluster": {"type": "str", "required": True}}


def body(module: AnsibleModule) -> dict[str, Any]:
    cluster = module.params["cluster"]
    with session.session(module.params) as opened:
        left = existing_workers.unfinished_clones(opened, cluster)
        return {"changed": False, "workers": existing_workers.read_workers(opened, [cluster]), "unfinished": left}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
