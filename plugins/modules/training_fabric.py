#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the result of a measurement of all pairs of nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_fabric
short_description: Write the result of a bandwidth measurement between all pairs of nodes
version_added: 1.0.0
description:
  - Compares the bandwidth of all pairs, which the playbook C(fabric_check) measured, and writes C(result.json) to a
    folder of the check.
  - Reports a node that is slow with every other node, a pair that is slow although other pairs of both nodes are not,
    a pair that stalled or was not measured, a node that sends through another device than requested, and a
    pair below the bandwidth that its cards can carry.
  - A pair is slow if its slower direction has less than the share O(least) of the usual bandwidth, which is the median
    of the best pair of each node.
options:
  name:
    description: The name of the check, which is the name of its folder.
    type: str
    required: true
  folder:
    description: The folder with the results of checks.
    type: path
    required: true
  nodes:
    description: The names of the nodes.
    type: list
    elements: str
    required: true
  transport:
    description: The transport of the measurement.
    type: str
    choices: [tcp, rdma]
    required: true
  nccl:
    description: The version of NCCL that measured; empty if MPI measured.
    type: str
    default: ""
  records:
    description: The measurements, in the form of C(pairs.jsonl) in the run directory.
    type: str
    default: ""
  job:
    description: The job that measured, in the form of M(dml.vsphere.training_job_info).
    type: dict
    required: true
  devices:
    description: The devices of each node that the traffic is meant for; an empty list accepts all devices.
    type: dict
    default: {}
  least:
    description: The least share of the usual or of the expected bandwidth.
    type: float
    default: 0.8
  expected:
    description: The expected bandwidth in Gbit/s; with V(0) it is calculated from the cards if they are known.
    type: float
    default: 0
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.training_fabric_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Write the result of the measurement
  dml.vsphere.training_fabric:
    name: fabric-20260102T030405Z-tcp-3
    folder: "{{ playbook_dir }}/reports/fabric"
    nodes: [worker01, worker02, worker03]
    transport: tcp
    records: "{{ pairs.content | b64decode }}"
    job: "{{ looked.job }}"
  delegate_to: localhost
"""

RETURN = r"""
result:
  description: The content of C(result.json).
  returned: success
  type: dict
  contains:
    pairs:
      description: The pairs with C(nodes), C(gbits) of the slower direction, C(sent) of each node and C(latency_us).
      type: list
      elements: dict
    cards:
      description: For each node the device that carried the traffic, its card, the expected and the measured bandwidth.
      type: list
      elements: dict
    findings:
      description: The findings with C(rule), C(nodes) and C(text).
      type: list
      elements: dict
lines:
  description: The result as lines for a terminal.
  returned: success
  type: list
  elements: str
error:
  description: The findings in one text; empty if there are none.
  returned: success
  type: str
files:
  description: The paths of the files.
  returned: success
  type: list
  elements: str
state:
  description: The checksum and mode of each file, and the mode of the folder; in check mode the planned ones.
  returned: success
  type: dict
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.training import pair_result
from ..module_utils.training.reports.report_files import PRIVATE, ReportFiles

ARGUMENTS = {
    "name": {"type": "str", "required": True},
    "folder": {"type": "path", "required": True},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "transport": {"type": "str", "choices": ["tcp", "rdma"], "required": True},
    "nccl": {"type": "str", "default": ""},
    "records": {"type": "str", "default": ""},
    "job": {"type": "dict", "required": True},
    "devices": {"type": "dict", "default": {}},
    "least": {"type": "float", "default": 0.8},
    "expected": {"type": "float", "default": 0},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    if not 0 < params["least"] <= 1 or params["expected"] < 0:
        cause = f"least is {params['least']} and expected is {params['expected']}"
        remedy = "specify a share above 0 and at most 1, and an expected bandwidth of 0 or more"
        raise Refused(params["name"], "compare the pairs", cause, remedy)
    check = {**params, "asked": params["devices"], "goal": params["expected"]}
    result = pair_result.result(check, params["records"], params["job"])
    texts = {"result.json": json.dumps(result, indent=4, sort_keys=True) + "\n"}
    files = ReportFiles(Path(params["folder"], params["name"]), texts, PRIVATE)
    shown = {"result": result, "lines": pair_result.lines(result), "files": files.paths}
    error = " ".join(each["text"] for each in result["findings"])
    return {**runner.converge_one(module, files), **shown, "error": error}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
