#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: an inventory of a vCenter, with the decisions that only the user can make."""

from __future__ import annotations

DOCUMENTATION = r"""
module: discovery_info
short_description: Read a vCenter and return an inventory for it
version_added: 1.0.0
description:
  - Reads the clusters of a vCenter with their hosts, GPUs, RDMA cards, networks and datastores, and the templates.
  - Returns an inventory as YAML with comments. Its variables describe the hosts as they are. A comment that starts with
    C(decide:) names a decision that only you can make, with a proposal below it.
  - Only reads, and changes no setting. It needs no privilege that changes anything.
  - The inventory contains no password.
options:
  clusters:
    description:
      - Names of the clusters to read. The default is all clusters of the vCenter.
      - Clusters without an NVIDIA GPU are listed in a comment, unless no cluster has one.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.esxi_info
  - module: dml.vsphere.cluster_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the vCenter
  dml.vsphere.discovery_info:
  register: found

- name: Write the inventory, unless there is one
  ansible.builtin.copy:
    content: "{{ found.inventory }}"
    dest: hosts.yml
    force: false
    mode: "0644"
"""

RETURN = r"""
inventory:
  description: The inventory as YAML.
  returned: success
  type: str
decisions:
  description: The decisions that the inventory leaves to the user, each with its cluster.
  returned: success
  type: list
  elements: str
clusters:
  description: The names of the clusters that were read.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.core import masked
from ..module_utils.errors import Refused
from ..module_utils.site.discovery import inventory_plan, site_reader
from ..module_utils.vsphere import session

ARGUMENTS = {"clusters": {"type": "list", "elements": "str", "default": []}}


def body(module: AnsibleModule) -> dict[str, Any]:
    with session.session(module.params) as opened:
        site = site_reader.read(opened, module.params["clusters"])
    found = {
        "inventory": inventory_plan.text_of(site),
        "decisions": inventory_plan.decisions_of(site),
        "clusters": [cluster.name for cluster in site.clusters],
    }
    if masked.contains(found, module.params["password"]):
        cause = "its text contains the password, of which Ansible masks each occurrence"
        raise Refused("the inventory of this vCenter", "write it", cause, masked.REMEDY)
    return {"changed": False, **found}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
