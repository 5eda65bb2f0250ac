#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the state of a training job on Kubernetes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mpijob_info
short_description: Read the state of a training job on Kubernetes
version_added: 1.0.0
description:
  - Reads an MPIJob of Kubeflow's MPI Operator with its pods and events. An MPIJob itself reports only C(Created) while
    a pod cannot be scheduled or its image cannot be pulled; RV(job.why) is the cause in one sentence.
  - The return values have the form of M(dml.vsphere.training_job_info), which reads a job of C(mpirun). Run the module
    on the controller.
options:
  name:
    description: The name of the MPIJob.
    type: str
    required: true
  namespace:
    description: The namespace of the MPIJob.
    type: str
    default: default
  api:
    description: The API version of the operator.
    type: str
    choices: [v2beta1, v1alpha2]
    default: v2beta1
  desired:
    description: The desired MPIJob. RV(job.differs) lists the fields in which the existing MPIJob differs.
    type: dict
  kubectl:
    description: The C(kubectl) command in RV(job.workers).
    type: str
    default: kubectl
  names:
    description: The names for RV(job.workers), such as inventory names, by the name of the node in Kubernetes.
    type: dict
    default: {}
  log:
    description: Whether to return RV(log) also while the launcher runs.
    type: bool
    default: false
  blocked_before:
    description: RV(job.blocked) of an earlier result. The same report is not returned again.
    type: float
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.kubernetes
seealso:
  - module: dml.vsphere.training_job_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the state of the training job
  dml.vsphere.mpijob_info:
    name: resnet50
    namespace: training
  delegate_to: localhost
  register: mpijob

- name: Fail because the training job died
  ansible.builtin.fail:
    msg: "{{ mpijob.job.why }}"
  when: mpijob.job.state == 'died'
"""

RETURN = r"""
job:
  description: The job.
  returned: success
  type: dict
  contains:
    state:
      description: V(absent), V(waiting), V(running), V(finished), V(died) or V(stopped).
      type: str
      sample: waiting
    why: {description: "The reason why it waits, was stopped or died, in one sentence.", type: str}
    launcher:
      description: The name, the UID and the start of the launcher's pod, and the boot id of its node.
      type: dict
    job: {description: The UID of the MPIJob., type: str}
    mpirun_command: {description: The command of the launcher., type: list, elements: str}
    nodes_of_ranks: {description: The pod of each rank., type: list, elements: str}
    pods:
      description:
        - The pods by name, each with C(uid), C(node), C(role), C(index), C(restarts), C(started) and C(is_deleted).
      type: dict
    silences:
      description: A sentence for each node of its pods that Kubernetes reported as not ready, with the latest time.
      type: list
      elements: str
    workers:
      description:
        - The pods of the workers in the order of ranks, in the form of O(dml.vsphere.vmotion_test#module:nodes).
          C(name) is the name of the node, and C(reach) is a command prefix, which runs the appended words in the pod.
      type: list
      elements: dict
    rank_0_on:
      description:
        - The node of the first worker, with its name as in RV(job.workers), also after its pod was deleted. It is
          missing if it is unknown.
      type: str
    blocked:
      description:
        - For V(waiting), the time of the last report that the node of a pod lacks a folder, in seconds since 1970. Only
          a user can change that. It is missing if there is no such report.
      type: float
    started: {description: "The time of the start, in seconds since 1970.", type: float}
    ended: {description: "The time of the end, in seconds since 1970.", type: float}
    exit_code: {description: Exit code of the launcher., type: int}
    last_lines: {description: The last lines of the launcher's output., type: list, elements: str}
    machine:
      description: For V(died), whether a machine failed, so that another attempt may succeed.
      type: bool
    differs: {description: The fields in which it differs from O(desired)., type: list, elements: str}
log:
  description: The end of the launcher's output. It is empty while the launcher runs, unless O(log) is true.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.kubernetes import manifests, state
from ..module_utils.kubernetes.api import connection, jobs
from ..module_utils.kubernetes.job_spec import APIS, V2BETA1

ARGUMENTS = {
    **connection.arguments(),
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": "default"},
    "api": {"type": "str", "choices": list(APIS), "default": V2BETA1},
    "desired": {"type": "dict"},
    "kubectl": {"type": "str", "default": "kubectl"},
    "names": {"type": "dict", "default": {}},
    "log": {"type": "bool", "default": False},
    "blocked_before": {"type": "float"},
}


def kubectl(params: dict[str, Any]) -> list[str]:
    """Return the kubectl command for the namespace of the job."""
    options = [(f"--{key}", params[key]) for key in ("kubeconfig", "context", "namespace")]
    return [params["kubectl"], *(word for option, value in options if value for word in (option, value))]


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    server = connection.Api(params["kubeconfig"], params["context"])
    snapshot = jobs.read(server, params["namespace"], params["name"], params["api"])
    job = state.state_of(snapshot)
    if job.get("blocked") == params["blocked_before"]:
        job.pop("blocked", None)
    job.update(workers=state.workers_of(snapshot, kubectl(params), params["names"]) if snapshot.job else [])
    job.update(state.first_node(snapshot, params["names"]))
    if params["desired"] and snapshot.job:
        job["differs"] = list(manifests.differences(params["desired"].get("spec"), snapshot.job.get("spec")))
    launcher, log = (job.get("launcher") or {}).get("host"), snapshot.log
    if not log and params["log"] and launcher:
        log = jobs.launcher_log(server, params["namespace"], launcher)
    return {"changed": False, "job": job, "log": log}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
