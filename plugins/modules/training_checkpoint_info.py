#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the newest complete checkpoint of a training run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_checkpoint_info
short_description: Find the newest complete checkpoint of a training run
version_added: 1.0.0
description:
  - Runs on the controller, and looks among the outputs of a run for the newest complete checkpoint. A newer one
    that is torn is named in a warning. Without a complete checkpoint, the module fails if O(required) is true.
  - A checkpoint with a file C(.sha256) beside it must have this checksum. Files with the suffixes of PyTorch, NumPy and
    Keras archives must have the directory of a zip archive. Other files must not be empty.
options:
  name:
    description: The name of the run, for messages.
    type: str
    required: true
  folder:
    description: The folder on the controller with the outputs of the run.
    type: path
    required: true
  patterns:
    description:
      - Patterns of checkpoints; names, or paths from O(folder), with C(*) and C(?). By default files with usual
        suffixes, such as C(.pt).
    type: list
    elements: str
    default: []
  required:
    description: Whether a run without a complete checkpoint is a failure; otherwise RV(path) is empty.
    type: bool
    default: true
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_outputs
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the newest complete checkpoint
  dml.vsphere.training_checkpoint_info:
    name: one
    folder: reports/runs/one/outputs
    patterns: ["epoch*.pt"]
  delegate_to: localhost
"""

RETURN = r"""
path:
  description: The path of the checkpoint from O(folder).
  returned: success
  type: str
torn:
  description: The newer checkpoints that are not complete, each with C(path) and C(fault).
  returned: success
  type: list
  elements: dict
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.training.reports import saved_checkpoints

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "folder": {"type": "path", "required": True},
    "patterns": {"type": "list", "elements": "str", "default": []},
    "required": {"type": "bool", "default": True},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    try:
        choice = saved_checkpoints.newest(params["name"], Path(params["folder"]), params["patterns"])
    except Refused as refusal:
        if params["required"]:
            raise
        return {"changed": False, "path": "", "torn": [], "warnings": [str(refusal)]}
    torn = [{"path": path, "fault": fault} for path, fault in choice.torn]
    warnings = [f"the checkpoint {path} is torn ({fault}), so {choice.path} is used" for path, fault in choice.torn]
    return {"changed": False, "path": choice.path, "torn": torn, "warnings": warnings}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
