#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the findings of recent bandwidth measurements."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_fabric_info
short_description: Return the findings of recent bandwidth measurements between nodes
version_added: 1.0.0
description:
  - Reads the results of M(dml.vsphere.training_fabric). For each transport, the last check with two or more of the
    nodes counts if it is recent. A later check without findings replaces an earlier one.
options:
  folder:
    description: The folder with the results of checks. If the folder does not exist, there are no results.
    type: path
    required: true
  nodes:
    description: The names of the nodes of a planned run.
    type: list
    elements: str
    required: true
  recent:
    description: The number of seconds for which the result of a check counts.
    type: int
    default: 86400
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_fabric
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the findings of recent measurements
  dml.vsphere.training_fabric_info:
    folder: "{{ playbook_dir }}/reports/fabric"
    nodes: [worker01, worker02, worker03]
  delegate_to: localhost
  register: fabric
"""

RETURN = r"""
stops:
  description: The findings about the nodes, each with the name of its check.
  returned: success
  type: list
  elements: str
checks:
  description: The names of all checks in the folder.
  returned: success
  type: list
  elements: str
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.training import pair_result
from ..module_utils.training.reports import saved_results

ARGUMENTS = {
    "folder": {"type": "path", "required": True},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "recent": {"type": "int", "default": 86400},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    checks = saved_results.fabric_checks(Path(params["folder"]))
    stops = pair_result.stops(checks, params["nodes"], time.time(), params["recent"])
    return {"changed": False, "stops": stops, "checks": [check["name"] for check in checks]}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
