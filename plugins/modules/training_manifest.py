#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the manifest of a training run on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_manifest
short_description: Write the manifest of a training run
version_added: 1.0.0
description:
  - Writes C(manifest.json) in the folder of a run on the controller. The manifest contains the program, the nodes and
    the settings of the run, who started it, and its end. Only its owner can read it.
options:
  folder:
    description: The folder of the run on the controller.
    type: path
    required: true
  manifest:
    description: The manifest of a run that starts. Without it, the existing file is completed.
    type: dict
  end:
    description: Facts about the end of the run, which are added to those in the file. Null values are ignored.
    type: dict
    default: {}
  outputs:
    description: A folder on the controller with the outputs of the run, whose checksums are added.
    type: path
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.training_runs_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Complete the manifest of a training run
  dml.vsphere.training_manifest:
    folder: reports/runs/one
    end: {state: finished, steps: 100}
    outputs: reports/runs/one/outputs
  delegate_to: localhost
"""

RETURN = r"""
state:
  description: The mode of the folder, and the checksum and mode of the file.
  returned: success
  type: dict
manifest:
  description: The content of the manifest.
  returned: success
  type: dict
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.training import manifest
from ..module_utils.training.reports import saved_manifests
from ..module_utils.training.reports.report_files import PRIVATE, ReportFiles

ARGUMENTS = {
    "folder": {"type": "path", "required": True},
    "manifest": {"type": "dict"},
    "end": {"type": "dict", "default": {}},
    "outputs": {"type": "path"},
}


def content_of(params: dict[str, Any]) -> dict[str, Any]:
    """Return the new content of the manifest."""
    folder, given = Path(params["folder"]), params["manifest"]
    wrong = manifest.faults(given) if given is not None else ""
    if wrong:
        raise Refused(str(folder), "write the manifest of a training run", wrong)
    content = saved_manifests.read(folder) if given is None else given
    outputs = {"outputs": saved_manifests.outputs(Path(params["outputs"]))} if params["outputs"] else {}
    end = {**params["end"], **outputs}
    return manifest.ended(content, end) if end else dict(content)


def body(module: AnsibleModule) -> dict[str, Any]:
    content = content_of(module.params)
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    files = ReportFiles(Path(module.params["folder"]), {manifest.FILE: text}, PRIVATE)
    return {**runner.converge_one(module, files), "manifest": content}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
