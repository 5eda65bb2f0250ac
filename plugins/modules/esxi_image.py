#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the image of a cluster, and its hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_image
short_description: Set the image of a cluster that vLCM manages, and apply it to emptied hosts
version_added: 1.0.0
description:
  - If an image manages a cluster, VIBs belong in that image. This module changes the image, such as the component with
    NVIDIA's vGPU manager, with vCenter's REST API. It opens a draft, changes it, lets vCenter validate it, and commits
    it. A draft that fails is discarded, and the rest of the image stays unchanged. Without O(hosts), vLCM then compares
    the hosts of the cluster with the image, also if it stays as it is.
  - With O(hosts), vSphere Lifecycle Manager (vLCM) applies the image to these hosts, one after another, and to no
    other. They must be in maintenance mode, so that vLCM moves no virtual machine. Before, vLCM compares the hosts
    with the image and checks them; afterwards it compares them again. The role P(dml.vsphere.esxi_host#role) does so
    around a running job.
  - The remediation policy of the cluster is read before. It must not change the power state of virtual machines,
    remediate several hosts at once, or disable the admission control of HA.
  - A component must be in the depot of vCenter. If it is not, validation fails. O(depot) imports a bundle.
options:
  cluster: {description: Name of the cluster., type: str}
  components:
    description:
      - The versions of components in addition to the base image, by name. The name of a component, such as
        V(NVD-AIE-800), is not the name of its VIB.
    type: dict
    default: {}
  absent: {description: The names of components that the image must not have., type: list, elements: str, default: []}
  base_image: {description: The version of ESXi in the image., type: str, default: ""}
  add_on:
    description: The add-on of the vendor of the hosts.
    type: dict
    suboptions:
      name: {description: The name of the add-on., type: str, required: true}
      version: {description: The version of the add-on., type: str, required: true}
  hosts:
    description: The hosts of the cluster to which vLCM applies the image.
    type: list
    elements: str
    default: []
  accept_eula:
    description:
      - Whether you accept VMware's End User License Agreement, which vLCM requires before it applies an image.
        Without it, O(hosts) that do not run the image are refused.
    type: bool
    default: false
  depot:
    description:
      - The URL of an offline bundle, which vCenter fetches into its depot. A bundle that was imported from this URL is
        not imported again.
    type: str
  task_timeout:
    description: Seconds to wait for vCenter to import a bundle, to validate or commit the image, and to check a host.
    type: int
    default: 1800
  apply_timeout:
    description: Seconds to wait for vLCM to apply the image to a host, with its reboot.
    type: int
    default: 7200
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.progress
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.esxi_vib
  - module: dml.vsphere.esxi_rollout
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Add the vGPU manager to the cluster's image
  dml.vsphere.esxi_image:
    cluster: gpu
    components:
      NVD-AIE-800: 550.90.05-1OEM.800.1.0.20613240
    depot: https://depot.example.com/NVD-AIE-800_550.90.05.zip

- name: Apply the image to a host in maintenance mode
  dml.vsphere.esxi_image:
    cluster: gpu
    hosts: [esx01.lab]
    accept_eula: true
"""

RETURN = r"""
state:
  description: The image; in check mode, the image after a real run.
  returned: with O(cluster)
  type: dict
  contains:
    managed: {description: Whether an image manages the cluster., type: bool}
    compliance:
      description: Whether the hosts ran the image when vLCM last checked, such as V(compliant) or V(non_compliant).
      type: str
    base_image: {description: The version of its base image., type: str}
    add_on: {description: "The C(name) and C(version) of its add-on, V(null) without one.", type: dict}
    components: {description: "The versions of the components in addition to it, by name.", type: dict}
  sample: {managed: true, base_image: 8.0.3-0.0.24022510, components: {NVD-AIE-800: 550.90.05-1OEM.800.1.0.20613240}}
why:
  description: The reasons why hosts do not run the image yet.
  returned: with O(cluster)
  type: list
  elements: str
hosts:
  description: The hosts of O(hosts).
  returned: success
  type: list
  elements: dict
  contains:
    host: {description: The host., type: str}
    changed: {description: Whether vLCM applied the image to it., type: bool}
    needs: {description: "What it needs for that, such as V(maintenance) and V(reboot).", type: list}
    reboots: {description: The number of its reboots., type: int}
    why: {description: The reasons in words., type: list}
    state: {description: "C(compliance), C(impact) and C(in_maintenance).", type: dict}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.hosts.image_work import ImageWork
from ..module_utils.maintenance.lock import holder, keeper
from ..module_utils.vsphere import rest, session

ARGUMENTS: dict[str, Any] = {
    "cluster": {"type": "str"},
    "components": {"type": "dict", "default": {}},
    "absent": {"type": "list", "elements": "str", "default": []},
    "base_image": {"type": "str", "default": ""},
    "add_on": {
        "type": "dict",
        "options": {"name": {"type": "str", "required": True}, "version": {"type": "str", "required": True}},
    },
    "hosts": {"type": "list", "elements": "str", "default": []},
    "accept_eula": {"type": "bool", "default": False},
    "depot": {"type": "str"},
    "task_timeout": {"type": "int", "default": 1800},
    "apply_timeout": {"type": "int", "default": 7200},
    **progress.ARGUMENTS,
}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    report = progress.Progress(params["progress_file"]).report
    with holder.marked(), session.session(params) as opened, keeper.renewing(opened), rest.opened(opened) as api:
        return ImageWork(module, opened, api, params, report).run()


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **ARGUMENTS},
        supports_check_mode=True,
        required_one_of=[("cluster", "depot")],
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
