#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the runs of a scaling measurement."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_sweep_info
short_description: Plan the runs of a scaling measurement
version_added: 1.0.0
description:
  - Plans O(repeats) runs for each number of nodes and transport. The transports of one size follow each other, and
    every second round runs in reverse order, so that a linear drift has the same effect on all points.
  - Leaves out the runs that have a good result in O(results), and refuses results with other options than O(asked).
options:
  name:
    description: The name of the measurement; the names of its runs start with it.
    type: str
    default: scaling
  nodes:
    description: The names of the nodes; a run on two nodes uses the first two.
    type: list
    elements: str
    required: true
  sizes:
    description: The numbers of nodes to measure; by default from 1 to all nodes.
    type: list
    elements: int
    default: []
  transports:
    description: The transports to measure.
    type: list
    elements: str
    required: true
  repeats:
    description: The number of runs for each size and transport.
    type: int
    default: 3
  results:
    description: The folder with the results of earlier runs. If the folder does not exist, there are no results.
    type: path
    required: true
  asked:
    description: The options of the runs, in the form of C(asked) in a result.
    type: dict
    required: true
  prove:
    description: Whether a result is good only if its transport was verified.
    type: bool
    default: true
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_report
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Plan the runs on one, two and four nodes
  dml.vsphere.training_sweep_info:
    nodes: [worker-1, worker-2, worker-3, worker-4]
    sizes: [1, 2, 4]
    transports: [tcp, rdma]
    results: "{{ playbook_dir }}/reports/runs"
    asked: {framework: pytorch, options: [--batch-size, "32"]}
  delegate_to: localhost
  register: sweep

- name: Show the remaining runs
  ansible.builtin.debug:
    msg: "{{ sweep_runs.summary }}"
"""

RETURN = r"""
runs:
  description: All runs in their order, each with C(name), C(nodes), C(transport) and C(repeat).
  returned: success
  type: list
  elements: dict
left:
  description:
    - The runs without a good result, each also with the names of its nodes in C(on), and with C(again), which is
      V(true) if the run has a result that does not count.
  returned: success
  type: list
  elements: dict
summary:
  description: The number and the names of the remaining runs.
  returned: success
  type: str
  sample: "1 of 2 runs are to be made: scaling-2-nodes-tcp-1"
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.training import sweep_runs
from ..module_utils.training.reports import saved_results

ARGUMENTS = {
    "name": {"type": "str", "default": "scaling"},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "sizes": {"type": "list", "elements": "int", "default": []},
    "transports": {"type": "list", "elements": "str", "required": True},
    "repeats": {"type": "int", "default": 3},
    "results": {"type": "path", "required": True},
    "asked": {"type": "dict", "required": True},
    "prove": {"type": "bool", "default": True},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    name, nodes = params["name"], params["nodes"]
    earlier = saved_results.runs(Path(params["results"]), f"{name}-*")
    try:
        runs = sweep_runs.runs(
            params["sizes"] or range(1, len(nodes) + 1), params["transports"], params["repeats"], name
        )
        left = sweep_runs.remaining(sweep_runs.with_nodes(runs, nodes), earlier, params["asked"], prove=params["prove"])
    except sweep_runs.SweepError as error:
        raise Refused(f"the measurement {name}", "plan its runs", str(error)) from error
    return {"changed": False, "runs": runs, "left": left, "summary": sweep_runs.summary(runs, left)}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
