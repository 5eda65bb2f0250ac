#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the connections and RDMA counters of the ranks of a running job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_transport_info
short_description: Read the connections and RDMA counters of the ranks of a running job
version_added: 1.0.0
description:
  - Reads in parallel, from all nodes of a running job, the established TCP connections of each rank, whether it has an
    RDMA device open, its step, and the bytes that the RDMA devices of the node have sent.
  - Only root and the process owner can list a process's open files.
options:
  timeout:
    description: Seconds to wait for the answers of all nodes.
    type: float
    default: 30
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.nodes
seealso:
  - module: dml.vsphere.training_watch
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the connections of the job
  dml.vsphere.training_transport_info:
    nodes:
      - {name: worker-1, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
      - {name: worker-2, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.2]}
    folder: /var/lib/dml/runs/one
  delegate_to: localhost
  register: transport
"""

RETURN = r"""
nodes:
  description:
    - The reading of each node. C(ranks), each with C(rank), C(pid), C(step), C(connections) as pairs of addresses and
      C(rdma_open), C(devices), each with C(device), C(driver) and C(sent_bytes), and C(checksums) of the ranks' final
      parameters. A node or rank that could not be read has C(error) instead.
  returned: success
  type: dict
  sample:
    worker-1:
      ranks: [{rank: 0, pid: 4711, step: 120, connections: [[10.0.1.1, 10.0.1.2]], rdma_open: false}]
      devices: []
      checksums: {}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.vmotion.watch import node_programs, transport_program

ARGUMENTS = {
    **node_programs.NODES,
    "timeout": {"type": "float", "default": 30.0},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    return {
        "changed": False,
        "nodes": node_programs.run_on_nodes(params["nodes"], transport_program, [params["folder"]], params["timeout"]),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
