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
  - Looks at all nodes of a job at once, while it runs. The established TCP connections of each rank, whether it has an
    RDMA device open, how far it is, and what the RDMA devices of the node have sent.
  - Two looks, one before and one after some steps, prove the transport; the filter P(dml.vsphere.transport_seen#filter)
    does that.
  - What a process has open is told to its own user and to root alone.
options:
  timeout:
    description: Seconds within which every node must have answered.
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
- name: Look at the job
  dml.vsphere.training_transport_info:
    nodes:
      - {name: worker-1, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
      - {name: worker-2, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.2]}
    folder: /var/lib/dml/runs/one
  delegate_to: localhost
  register: seen
"""

RETURN = r"""
nodes:
  description:
    - By node C(ranks), each with C(rank), C(pid), C(step), C(connections) as pairs of addresses and C(rdma_open), and
      C(devices), each with C(device), C(driver) and C(sent_bytes), and C(checksums) of the parameters that ranks ended
      with. What could not be seen has C(error) instead.
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
from ..module_utils.vmotion.watch import node_programs, transport_side

ARGUMENTS = {
    **node_programs.NODES,
    "timeout": {"type": "float", "default": 30.0},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    return {
        "changed": False,
        "nodes": node_programs.run_on_nodes(params["nodes"], transport_side, [params["folder"]], params["timeout"]),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
