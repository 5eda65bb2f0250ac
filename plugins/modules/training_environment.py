#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the environment of a training program on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_environment
short_description: Install the requirements of a training program over the stack
version_added: 1.0.0
description:
  - Creates a virtual environment that sees the packages of the interpreter of the stack, and installs the requirements
    there with pip. The versions of the stack are constraints, and the stack is not changed.
  - Equal requirements over an equal stack have the same environment, which later runs use again. Requirements that
    refer to files are the same only if all files of the folder are.
  - The interpreter of the stack needs the modules C(venv) and C(pip).
options:
  python:
    description: The interpreter of the stack.
    type: path
    required: true
  requirements:
    description: The content of the requirements file.
    type: str
    required: true
  folder:
    description: The folder on the node that contains the requirements file and the files to which it refers.
    type: path
    required: true
  name:
    description: The path of the requirements file in O(folder).
    type: str
    default: requirements.txt
  code:
    description: The checksum of O(folder).
    type: str
    default: ""
  store:
    description: The folder on the node that keeps the environments.
    type: path
    required: true
  timeout:
    description: Seconds after which pip is stopped.
    type: int
    default: 1800
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.training_folder
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Install the requirements of the training program
  dml.vsphere.training_environment:
    python: /opt/dml/horovod/bin/python
    requirements: "{{ lookup('ansible.builtin.file', 'mine/requirements.txt') }}"
    folder: /var/lib/dml/runs/one/work
    store: /var/lib/dml/training/environments
"""

RETURN = r"""
state:
  description: The environment.
  returned: success
  type: dict
  contains:
    python: {description: The interpreter of the environment., type: str}
python:
  description: The interpreter of the environment, also in check mode.
  returned: success
  type: str
lock:
  description: The packages that were installed over the stack, as C(NAME==VERSION).
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.training.guest.environment import Environment

ARGUMENTS = {
    "python": {"type": "path", "required": True},
    "requirements": {"type": "str", "required": True},
    "folder": {"type": "path", "required": True},
    "name": {"type": "str", "default": "requirements.txt"},
    "code": {"type": "str", "default": ""},
    "store": {"type": "path", "required": True},
    "timeout": {"type": "int", "default": 1800},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    environment = Environment(module.params)
    converged = runner.converge_one(module, environment)
    return {**converged, "python": environment.python, "lock": environment.lock}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
