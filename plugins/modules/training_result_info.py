#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the result of a training run."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_result_info
short_description: Read the result of a training run and verify its transport
version_added: 1.0.0
description:
  - Runs on the launcher node when a job of M(dml.vsphere.training_job) has ended, and reads the run directory.
  - The rate is that of the ranks' summaries. Without summaries, it is the total that tf_cnn_benchmarks or Horovod's
    synthetic benchmark printed at its end, else the rate of O(curve).
  - The module verifies the transport with NCCL's log in the output of the job and, for RDMA, with counters from before
    and after the job. PVRDMA can fall back to TCP outside the guest, so only the counters of the ESXi hosts count for
    PVRDMA.
options:
  run_dir:
    description: The run directory on the launcher.
    type: path
    required: true
  job:
    description: The job, instead of that in O(run_dir), in the form of M(dml.vsphere.mpijob_info).
    type: dict
  output:
    description: The output of the job, instead of that in O(run_dir).
    type: str
  nodes:
    description: The names of the nodes, in the order of their ranks.
    type: list
    elements: str
    required: true
  transport:
    description: The transport that the job was set to.
    type: str
    choices: [tcp, rdma]
    required: true
  name:
    description: The name of the run.
    type: str
    required: true
  asked:
    description: The options of the run, only for the record; runs with the same options can be compared.
    type: dict
    default: {}
  ranks_per_node:
    description: Ranks of each node, one for each GPU.
    type: int
    default: 1
  stack:
    description: The software versions of the job, only for the record.
    type: raw
    default: ""
  pace:
    description: The pace of the job, as the program that follows it returns it.
    type: dict
    default: {}
  curve:
    description: The rate and the loss of the job over its steps.
    type: dict
    default: {}
  records:
    description: The file of step records on the controller, only for the record.
    type: str
    default: ""
  summaries:
    description:
      - The summaries that the ranks wrote on their nodes, with C(images_per_sec), C(seconds_per_epoch),
        C(gradient_bytes) and C(parameters_sha256), and C(network) for a program whose options do not contain it.
    type: list
    elements: dict
    default: []
  cards:
    description: The network adapter of each node, with its name, C(card), and its C(speed) in Gbit/s in the guest.
    type: list
    elements: dict
    default: []
  built:
    description: The proofs that the roles stored on each node, only for the record.
    type: dict
    default: {}
  gradient_bytes:
    description: Bytes of the gradients of one step, if no summary contains them.
    type: float
    default: 0
  rdma_before:
    description: The RDMA devices of each node before the job, with C(name), C(driver) and C(sent_bytes).
    type: dict
    default: {}
  rdma_after:
    description: The RDMA devices of each node after the job.
    type: dict
    default: {}
  esxi_hosts:
    description: The ESXi host of each node.
    type: dict
    default: {}
  neighbours:
    description: Workers that do not belong to the job, and their ESXi hosts, whose counters include other traffic.
    type: dict
    default: {}
  esxi_before:
    description: The RV(dml.vsphere.esxi_info#module:hosts) of M(dml.vsphere.esxi_info) before the job.
    type: list
    elements: dict
    default: []
  esxi_after:
    description: The RV(dml.vsphere.esxi_info#module:hosts) of M(dml.vsphere.esxi_info) after the job.
    type: list
    elements: dict
    default: []
  prove:
    description: Whether a transport that could not be verified is a fault.
    type: bool
    default: true
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_job
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the result of the training run
  dml.vsphere.training_result_info:
    run_dir: /var/lib/dml/runs/one
    name: one
    nodes: [worker-1, worker-2]
    transport: tcp
    curve: "{{ followed.curve }}"
    pace: "{{ followed.pace }}"
  register: training

- name: Require a run that counts
  ansible.builtin.assert:
    that: training.faults | length == 0
    fail_msg: "{{ training.faults | join(' ') }}"
    success_msg: "{{ training.summary }}"
"""

RETURN = r"""
result:
  description:
    - The result, which the role P(dml.vsphere.training#role) stores and M(dml.vsphere.training_report) reads.
  returned: success
  type: dict
  contains:
    name: {description: The name of the run., type: str}
    nodes: {description: The number of nodes., type: int}
    gpus: {description: The number of ranks of all nodes., type: int}
    transport: {description: The transport that the job was set to., type: str}
    card: {description: The names of the network adapters of the nodes., type: str}
    speed: {description: The speed of the slowest adapter in Gbit/s; V(null) if a speed is unknown., type: float}
    images_per_sec: {description: Images per second of all ranks; V(null) if unknown., type: float}
    seconds_per_epoch: {description: Seconds of an epoch; V(null) if no summary contains them., type: float}
    steps: {description: The last step of all ranks., type: int}
    loss: {description: The last loss., type: float}
    network: {description: The network that the program reports; V(null) if no summary contains it., type: str}
    curve: {description: Rate and loss over the steps., type: list, elements: dict}
    proof:
      description: C(wanted), C(transport) (V(tcp), V(rdma), V(local) or V(unproven)), C(ok) and C(why).
      type: dict
    job: {description: "The job, in the form of M(dml.vsphere.training_job_info).", type: dict}
    asked: {description: O(asked)., type: dict}
    built: {description: O(built)., type: dict}
    stack: {description: O(stack)., type: raw}
    records: {description: O(records)., type: str}
faults:
  description: The reasons why the run does not count, in sentences; empty if it counts.
  returned: success
  type: list
  elements: str
summary:
  description: The result in one sentence.
  returned: success
  type: str
  sample: "1021.0 images/s on 4 ranks of 4 nodes by tcp: NCCL's log says NET/Socket"
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.training import result
from ..module_utils.training.guest import supervisor
from ..module_utils.training.guest.job import job_state
from ..module_utils.training.transport.job_settings import TRANSPORTS

ARGUMENTS = {
    "run_dir": {"type": "path", "required": True},
    "job": {"type": "dict"},
    "output": {"type": "str"},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "transport": {"type": "str", "choices": list(TRANSPORTS), "required": True},
    "name": {"type": "str", "required": True},
    "asked": {"type": "dict", "default": {}},
    "ranks_per_node": {"type": "int", "default": 1},
    "stack": {"type": "raw", "default": ""},
    "pace": {"type": "dict", "default": {}},
    "curve": {"type": "dict", "default": {}},
    "records": {"type": "str", "default": ""},
    "summaries": {"type": "list", "elements": "dict", "default": []},
    "cards": {"type": "list", "elements": "dict", "default": []},
    "built": {"type": "dict", "default": {}},
    "gradient_bytes": {"type": "float", "default": 0.0},
    "rdma_before": {"type": "dict", "default": {}},
    "rdma_after": {"type": "dict", "default": {}},
    "esxi_hosts": {"type": "dict", "default": {}},
    "neighbours": {"type": "dict", "default": {}},
    "esxi_before": {"type": "list", "elements": "dict", "default": []},
    "esxi_after": {"type": "list", "elements": "dict", "default": []},
    "prove": {"type": "bool", "default": True},
}


def output_of(run_dir: str) -> str:
    """Return the output of the job."""
    try:
        return Path(run_dir, supervisor.OUTPUT).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Refused(run_dir, "read the output of the job", str(error), "specify the directory of a job") from error


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    run_dir, output = params["run_dir"], params["output"]
    job = params["job"] or job_state(run_dir)
    run_result = result.result(params, job, output_of(run_dir) if output is None else output)
    faults = result.faults(run_result, params["summaries"], run_dir, params["prove"])
    return {"changed": False, "result": run_result, "faults": faults, "summary": result.summary(run_result)}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
