#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the timers, licences and checkpoints of the nodes of a job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_guest_info
short_description: Read the timers, licences and checkpoints of the nodes of a job
version_added: 1.0.0
description:
  - Reads in parallel, in the guests of all nodes, the timers of ssh, sshd, TCP, Open MPI and of the ranks' environment,
    the licence of the GPU from C(nvidia-smi), and the latest checkpoint.
options:
  checkpoints:
    description: The folder on the nodes with the job's checkpoints. Empty if the job writes none.
    type: str
    default: ""
  timeout:
    description: Seconds to wait for the answers of all nodes.
    type: float
    default: 60
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.nodes
seealso:
  - module: dml.vsphere.vmotion
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the guests of the nodes
  dml.vsphere.training_guest_info:
    nodes:
      - {name: worker-1, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
    folder: /var/lib/dml/runs/one
  delegate_to: localhost
  register: guests
"""

RETURN = r"""
nodes:
  description:
    - The values by node, C(sysctls), C(ssh), C(sshd), C(mca), C(mpirun), C(environment), C(nvidia), C(rdma) and
      C(checkpoint), V(null) if a value could not be read; or C(error).
  returned: success
  type: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.vmotion.watch import guest_program, node_programs

ARGUMENTS = {
    **node_programs.NODES,
    "checkpoints": {"type": "str", "default": ""},
    "timeout": {"type": "float", "default": 60.0},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    words = [params["folder"], params["checkpoints"]]
    return {
        "changed": False,
        "nodes": node_programs.run_on_nodes(params["nodes"], guest_program, words, params["timeout"]),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
