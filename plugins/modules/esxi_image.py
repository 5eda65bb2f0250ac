#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: components of a cluster's image."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_image
short_description: Add a component to the image of a cluster that vLCM manages
version_added: 1.0.0
description:
  - If an image manages a cluster, VIBs belong in that image. This module changes one component of the image, such as
    NVIDIA's vGPU manager, with vCenter's REST API. It opens a draft, changes it, lets vCenter validate it, and commits
    it. A draft that fails is discarded, and other components stay unchanged.
  - The module does not remediate the cluster. vSphere Lifecycle Manager (vLCM) does, and empties, updates and boots one
    host after another. RV(steps) has the remaining steps.
  - The component must be in vCenter's depot. If it is not, validation fails and the error explains how to import it.
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  component:
    description: The component's name, such as V(NVD-AIE-800), which is not the name of its VIB.
    type: str
    required: true
  version:
    description: The component's version. Required if O(state=present).
    type: str
  state:
    description: Whether the component is part of the image.
    type: str
    choices: [present, absent]
    default: present
  task_timeout:
    description: Seconds to wait for vCenter to validate and to commit the image.
    type: int
    default: 600
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_vib
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Add the vGPU manager to the cluster's image
  dml.vsphere.esxi_image:
    cluster: gpu
    component: NVD-AIE-800
    version: 550.90.05-1OEM.800.1.0.20613240
  register: image

- name: Show the remaining steps
  ansible.builtin.debug:
    var: image.steps
"""

RETURN = r"""
state:
  description: The image; in check mode, the image after a real run.
  returned: success
  type: dict
  contains:
    managed: {description: Whether an image manages the cluster., type: bool}
    compliance:
      description: Whether the hosts ran the image when vLCM last checked, such as V(compliant) or V(non_compliant).
      type: str
    base_image: {description: The version of its base image., type: str}
    components: {description: "The versions of the components in addition to it, by name.", type: dict}
  sample: {managed: true, base_image: 8.0.3-0.0.24022510, components: {NVD-AIE-800: 550.90.05-1OEM.800.1.0.20613240}}
why:
  description: The reasons why the hosts do not run the component yet.
  returned: success
  type: list
  elements: str
steps:
  description: The remaining steps for the administrator and vLCM.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.hosts import cluster_image
from ..module_utils.vsphere import inventory, rest, session


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    desired = cluster_image.ComponentSpec(
        **{key: params[key] or "" for key in ("component", "version", "state")}, task_timeout=params["task_timeout"]
    )
    with session.session(params) as opened, rest.opened(opened) as api:
        cluster, _found = inventory.find_cluster(opened, params["cluster"])
        subject = cluster_image.ClusterImage(api, cluster._moId, params["cluster"], desired)
        work = runner.Work(
            [subject], refresh=lambda _subjects: None, make_plan=lambda now: cluster_image.plan_image(now, desired)
        )
        result = runner.converge(module, work)
    for entry in result.pop("hosts"):
        result.update({key: entry.get(key) for key in ("state", "why")})
    return {**result, "steps": cluster_image.steps(params["cluster"])}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **cluster_image.OPTIONS},
        supports_check_mode=True,
        required_if=cluster_image.REQUIRED_IF,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
