#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the outputs of a training run on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_outputs
short_description: Copy the outputs of a training run from a node to the controller
version_added: 1.0.0
description:
  - Runs on the controller and copies the files of a folder of a node, in one stream over the connection with which the
    controller reaches the node. Files that are already here with the same size and time are not copied again.
  - Only regular files are copied. The files on the node are not changed.
  - O(limit) applies to the files that arrive, not to those that the node lists. The copy ends with an error if almost
    nothing arrives for five minutes. After an error, none of the new files is in O(dest).
options:
  node:
    description: The name of the node, for messages.
    type: str
    required: true
  reach:
    description: The command, as a list of words, that runs a shell command on the node.
    type: list
    elements: str
    required: true
  folder:
    description: The folder on the node. Nothing is copied if it does not exist.
    type: str
    required: true
  dest:
    description: The folder on the controller.
    type: path
    required: true
  limit:
    description: The largest size of all files in MB.
    type: int
    default: 2000
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.training_folder
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Copy the outputs of the training run
  dml.vsphere.training_outputs:
    node: worker-1
    reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]
    folder: /var/lib/dml/runs/one/work/outputs
    dest: reports/runs/one/outputs
  delegate_to: localhost
"""

RETURN = r"""
state:
  description: The copied files, each with its size in bytes and its time in seconds since 1970.
  returned: success
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.training.reports.outputs import Outputs

ARGUMENTS = {
    "node": {"type": "str", "required": True},
    "reach": {"type": "list", "elements": "str", "required": True},
    "folder": {"type": "str", "required": True},
    "dest": {"type": "path", "required": True},
    "limit": {"type": "int", "default": 2000},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    return runner.converge_one(module, Outputs(module.params))


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
