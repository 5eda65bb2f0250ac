#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the role in vCenter for the account that this collection uses."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vcenter_role
short_description: Create a role in vCenter with exactly the privileges that the modules need
version_added: 1.0.0
description:
  - Creates a role from the privilege table of the collection, updates an existing role, or removes it. Tests compare
    the table with the calls that the modules make, and C(docs/privileges.md) shows it.
  - The module changes only roles whose name is C(dml.vsphere), or begins with it and a space.
  - Grants the role to users and groups. Other permissions stay unchanged. vCenter has one role for each account on each
    object, so the module fails if an account has another role on the same object. Only the first labels
    of domains must match, because vCenter shows C(admin@acme.com) of Active Directory as C(ACME\admin).
  - The account that runs this module needs C(Authorization.ModifyRoles), and C(Authorization.ModifyPermissions) for
    O(grants). The created role has them only if O(modules) contains C(vcenter_role).
options:
  name: {description: Name of the role., type: str, default: dml.vsphere}
  modules:
    description:
      - The modules that will be used; the role gets only their privileges. C(workers) stands for the inventory plugin.
      - The default is all modules except C(vcenter_role).
    type: list
    elements: str
  state:
    description: Whether the role exists. With V(absent), every account that has the role loses it.
    type: str
    choices: [present, absent]
    default: present
  grants:
    description: The accounts that get the role, and the objects on which they get it.
    type: list
    elements: dict
    default: []
    suboptions:
      principal: {description: 'User or group, as C(DOMAIN\name) or C(name@domain).', type: str, required: true}
      group: {description: Whether the principal is a group., type: bool, default: false}
      path:
        description: Path of an object in the inventory, such as C(/dc1/host/gpu). V(/) is the root of vCenter.
        type: str
        default: /
      propagate: {description: Whether the role also applies to all objects below., type: bool, default: true}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - Some privileges work only on the root of vCenter, such as C(Global.Settings) and C(Global.ManageCustomFields).
    C(docs/privileges.md) names the object of each.
  - This role has not been tested on a real vCenter. The simulator for the tests of this collection does not enforce
    privileges.
seealso:
  - module: dml.vsphere.shared_settings
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Create the role, and grant it to an account on all of vCenter
  dml.vsphere.vcenter_role:
    grants:
      - principal: ml@vsphere.local

- name: Create a role that suffices to read hosts and clusters and to build workers
  dml.vsphere.vcenter_role:
    name: dml.vsphere workers
    modules: [esxi_info, cluster_info, rdma_fabric, worker_vm]

- name: Remove the role
  dml.vsphere.vcenter_role:
    state: absent
"""

RETURN = r"""
state:
  description: The role as it is now.
  returned: success
  type: dict
  contains:
    privileges:
      description: Its privileges beyond those that every role has; V(null) without the role.
      type: list
      elements: str
    grants: {description: "The accounts that have the role, by object, with C(group) and C(propagate).", type: dict}
privileges:
  description: The privileges that the modules need.
  returned: success
  type: list
  elements: dict
  contains:
    privilege: {description: Its name in the API., type: str, sample: Host.Config.Settings}
    objects: {description: The objects on which it must be granted., type: list, elements: str, sample: [ESXi host]}
    modules: {description: The modules that need it., type: list, elements: str, sample: [esxi_roce]}
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.cluster import vcenter_role
from ..module_utils.hosts.module_privileges import TABLE
from ..module_utils.vsphere import session

GRANT = {
    "principal": {"type": "str", "required": True},
    "group": {"type": "bool", "default": False},
    "path": {"type": "str", "default": "/"},
    "propagate": {"type": "bool", "default": True},
}
ARGUMENTS = {
    "name": {"type": "str", "default": vcenter_role.PREFIX},
    "modules": {"type": "list", "elements": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "grants": {"type": "list", "elements": "dict", "default": [], "options": GRANT},
}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    modules = vcenter_role.modules_of(params["modules"])
    present = params["state"] == "present"
    desired = TABLE.privileges_of(modules) if present else None
    grants = [vcenter_role.Grant(**one) for one in params["grants"]] if present else []
    with session.session(params) as opened:
        result = runner.converge_one(module, vcenter_role.VcenterRole(opened, params["name"], desired, grants))
    return {**result, "privileges": TABLE.table(modules)}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
