#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the custom attributes that this collection leaves in vCenter."""

from __future__ import annotations

DOCUMENTATION = r"""
module: custom_attributes
short_description: Remove the custom attributes of this collection that no object carries
version_added: 1.0.0
description:
  - This collection marks its objects with custom attributes whose names begin with C(dml.vsphere). Their definitions
    belong to all of vCenter. This module removes the definitions of attributes that no host and no virtual machine of
    vCenter carries, and names the objects that carry the others. It removes none if the account has its role on the
    root of vCenter without the objects below, or if the root shows no role of the account or of a group, because
    other clusters, which it cannot see, may use them.
  - Do not run the module with an account that has the role C(No access) on an object below the root. vCenter hides
    that object and its permissions from the account, so the module cannot find the attributes there.
  - A note about the options of a kernel module expires when its host boots. The module clears expired notes on the
    hosts of O(cluster).
  - Do not run the module while another cluster of the same vCenter is being prepared. An attribute that is used for
    the first time between the check and the removal would lose its new value.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.cluster_lock
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Remove the custom attributes that no object carries
  dml.vsphere.custom_attributes:
    cluster: gpu
"""

RETURN = r"""
state:
  description: Each attribute of this collection, and whether it is V(defined); in check mode, whether it would be.
  returned: success
  type: dict
  sample: {dml.vsphere.worker: defined, dml.vsphere.fabric: null, notes that are over: []}
why: {description: The objects that carry the remaining attributes., returned: success, type: list, elements: str}
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.cluster.attributes import Attributes
from ..module_utils.vsphere import session

ARGUMENTS = {"cluster": {"type": "str", "required": True}}


def body(module: AnsibleModule) -> runner.Result:
    with session.session(module.params) as opened:
        return runner.converge_one(module, Attributes(opened, module.params["cluster"]))


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
