#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the state of a training job on Kubernetes, and the conditions that would end it while its nodes move."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mpijob_info
short_description: Read a training job on Kubernetes, and what would end it during vMotion of its nodes
version_added: 1.0.0
description:
  - With V(job) in O(gather), reads an MPIJob of Kubeflow's MPI Operator with its pods and events. An MPIJob itself
    reports only C(Created) while a pod cannot be scheduled or its image cannot be pulled; RV(job.why) is the cause in
    one sentence. RV(job) has the form of M(dml.vsphere.training_info), which reads a job of C(mpirun).
  - With V(findings), reads the nodes, pods and PodDisruptionBudgets of a Kubernetes cluster, with O(pvrdma) also its
    ConfigMaps, and if O(needs) contains GPUs of NVIDIA also the ClusterPolicy of the GPU Operator. Compares them with a
    job whose nodes vMotion will move.
  - The rules of findings are V(toleration) (pods that do not tolerate a stun), V(node_grace) (a stun that Kubernetes
    will detect), V(node) (a node that is missing, not ready or cordoned), V(control_plane) (an API server or etcd on a
    node that vMotion moves), V(operator), V(resource) (fewer devices than workers), V(disruption_budget),
    V(rdma_vendor) (a device plugin that excludes PVRDMA), and V(gpu_operator) (GPUs that containers get through CDI,
    with which pods can fail in guests of ESX).
  - Run the module on the controller.
options:
  gather:
    description: The parts to read. V(job) needs O(name), and V(findings) needs O(moved).
    type: list
    elements: str
    choices: [findings, job]
    default: [job]
  name: {description: "The name of the MPIJob. For V(findings), it may not exist yet.", type: str}
  namespace: {description: The namespace of the job., type: str, default: default}
  api:
    description: The version of the MPI Operator's API, or V(trainjob) for a TrainJob of Kubeflow Trainer.
    type: str
    choices: [v2beta1, trainjob]
    default: v2beta1
  desired:
    description: The desired MPIJob or TrainJob. RV(job.differs) lists the fields in which the existing one differs.
    type: dict
  kubectl: {description: The C(kubectl) command in RV(job.workers)., type: str, default: kubectl}
  names:
    description: The names for RV(job.workers), such as inventory names, by the name of the node in Kubernetes.
    type: dict
    default: {}
  log: {description: Whether to return RV(log) while the launcher still runs., type: bool, default: false}
  blocked_before:
    description: RV(job.blocked) of an earlier result, to ignore the report that it contains.
    type: float
  moved: {description: The Kubernetes names of the nodes that vMotion moves., type: list, elements: str, default: []}
  at_once:
    description: Whether these nodes move at the same time, and not one after the other.
    type: bool
    default: false
  stun_seconds:
    description: Seconds for which a node may be stunned while vMotion moves it.
    type: float
    default: 100
  toleration_seconds:
    description:
      - The C(tolerationSeconds) of the job's pods. The default is the least toleration of a pod of the job O(name). If
        there is no such job, the default is that of the role P(dml.vsphere.mpijob#role).
    type: float
  needs:
    description: The number of units of each extended resource that a worker requests, by the name of the resource.
    type: dict
    default: {}
  pvrdma: {description: Whether the workers have PVRDMA., type: bool, default: false}
  accept:
    description: Findings with the severity V(stop) to accept, as RULE or RULE:OBJECT.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.kubernetes
seealso:
  - module: dml.vsphere.training_info
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

- name: Check whether the moves of its nodes would end a job
  dml.vsphere.mpijob_info:
    gather: [findings]
    moved: [worker01, worker02]
    needs: {nvidia.com/gpu: 1}
  delegate_to: localhost
  register: mpijob

- name: Require that no finding stops the moves
  ansible.builtin.assert:
    that: mpijob.stops | length == 0
    fail_msg: "{{ mpijob.lines | join('\n') }}"
"""

RETURN = r"""
job:
  description: The job.
  returned: with V(job) in O(gather)
  type: dict
  contains:
    state:
      description: V(absent), V(waiting), V(running), V(finished), V(died) or V(stopped).
      type: str
      sample: waiting
    why: {description: "The reason why the job waits, was stopped or died, in one sentence.", type: str}
    launcher:
      description: The name, the UID and the start of the launcher's pod, and the boot id of its node.
      type: dict
    job: {description: The UID of the MPIJob or TrainJob., type: str}
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
    machine: {description: "For V(died), whether a machine failed, so that another attempt may succeed.", type: bool}
    differs: {description: The fields in which the job differs from O(desired)., type: list, elements: str}
log:
  description: The end of the launcher's output. It is empty while the launcher runs, unless O(log) is true.
  returned: with V(job) in O(gather)
  type: str
findings:
  description: The findings, each with C(severity) (V(stop), V(warn) or V(note)), C(rule), C(object) and C(text).
  returned: with V(findings) in O(gather)
  type: list
  elements: dict
stops:
  description: The findings with the severity V(stop) that are not accepted.
  returned: with V(findings) in O(gather)
  type: list
  elements: dict
lines:
  description: The findings as text, one line each.
  returned: with V(findings) in O(gather)
  type: list
  elements: str
grace_seconds:
  description: Seconds of silence after which this Kubernetes reports a node as not ready.
  returned: with V(findings) in O(gather)
  type: float
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.core import findings
from ..module_utils.errors import Failed, Refused
from ..module_utils.kubernetes import gpu_operator, manifests, preflight, state
from ..module_utils.kubernetes.api import connection, jobs
from ..module_utils.kubernetes.job_kinds import APIS, V2BETA1

# A day: a longer stun is a mistake in the unit.
LONGEST = 86400
ARGUMENTS = {
    **connection.arguments(),
    "gather": {"type": "list", "elements": "str", "choices": ["findings", "job"], "default": ["job"]},
    "name": {"type": "str"},
    "namespace": {"type": "str", "default": "default"},
    "api": {"type": "str", "choices": list(APIS), "default": V2BETA1},
    "desired": {"type": "dict"},
    "kubectl": {"type": "str", "default": "kubectl"},
    "names": {"type": "dict", "default": {}},
    "log": {"type": "bool", "default": False},
    "blocked_before": {"type": "float"},
    "moved": {"type": "list", "elements": "str", "default": []},
    "at_once": {"type": "bool", "default": False},
    "stun_seconds": {"type": "float", "default": 100},
    "toleration_seconds": {"type": "float"},
    "needs": {"type": "dict", "default": {}},
    "pvrdma": {"type": "bool", "default": False},
    "accept": {"type": "list", "elements": "str", "default": []},
}


def kubectl(params: runner.Params) -> list[str]:
    """Return the kubectl command for the namespace of the job."""
    options = [(f"--{key}", params[key]) for key in ("kubeconfig", "context", "namespace")]
    return [params["kubectl"], *(word for option, value in options if value for word in (option, value))]


def job_of(server: connection.Api, params: runner.Params) -> runner.Result:
    """Return the job and the end of its output."""
    snapshot = jobs.read(server, params["namespace"], params["name"], params["api"])
    job: dict[str, Any] = {**state.state_of(snapshot)}
    if job.get("blocked") == params["blocked_before"]:
        job.pop("blocked", None)
    job.update(workers=state.workers_of(snapshot, kubectl(params), params["names"]) if snapshot.job else [])
    job.update(state.first_node(snapshot, params["names"]))
    if params["desired"] and snapshot.job:
        job["differs"] = list(manifests.changed_fields(params["desired"], snapshot.job))
    launcher, log = (job.get("launcher") or {}).get("host"), snapshot.log
    if not log and params["log"] and launcher:
        program = next((pod.program for pod in snapshot.pods if pod.name == launcher), "")
        log = jobs.shown_log(server, params["namespace"], params["name"], launcher, program)
    return {"job": job, "log": log}


def cluster_objects(api: connection.Api, params: runner.Params) -> preflight.ClusterObjects:
    """Read the objects of the cluster, with one call for each kind."""
    policies, clusters, cause = gpu_policies(api) if gpu_operator.is_needed(params["needs"]) else ([], [], "")
    return preflight.ClusterObjects(
        version=str((api.get("/version") or {}).get("gitVersion") or ""),
        nodes=api.items("/api/v1/nodes"),
        pods=api.items("/api/v1/pods"),
        budgets=api.items("/apis/policy/v1/poddisruptionbudgets"),
        config_maps=api.items("/api/v1/configmaps") if params["pvrdma"] else (),
        gpu_policies=policies,
        gpu_policies_unread=cause,
        gpu_clusters=clusters,
    )


def gpu_policies(api: connection.Api) -> tuple[list[dict[str, object]], list[dict[str, object]], str]:
    """Return the policies and clusters of the GPU Operator, and the cause if this account cannot read them."""
    try:
        return api.items(gpu_operator.POLICIES), api.items(gpu_operator.CLUSTERS), ""
    except Failed as error:
        return [], [], error.reason


def moved_job(params: runner.Params, cluster: preflight.ClusterObjects, api: connection.Api) -> preflight.MovedJob:
    """Return the job from the options, with the toleration of its pods if it exists."""
    given, stun = params["toleration_seconds"], params["stun_seconds"]
    namespace, name = params["namespace"], params["name"]
    needs = {str(name): int(count) for name, count in params["needs"].items()}
    pods = preflight.pods_of(cluster, namespace, name, jobs.owners(api, namespace, name, params["api"])) if name else []
    tolerates = given
    if given is None:
        tolerates = preflight.least_tolerated(pods) if pods else preflight.toleration(stun)
    moved, at_once = params["moved"], params["at_once"]
    return preflight.MovedJob(moved, stun, tolerates, needs, len(moved), params["pvrdma"], at_once)


def check(params: runner.Params) -> None:
    """Raise Refused for a missing option or an invalid duration."""
    for part, option in (("job", "name"), ("findings", "moved")):
        if part in params["gather"] and not params[option]:
            cause = f"the option {option} is missing"
            raise Refused("Kubernetes", f"read the {part}", cause, f"set {option}, or leave {part} out of gather")
    for option in ("stun_seconds", "toleration_seconds"):
        if params[option] is not None and not 0 <= params[option] <= LONGEST:
            cause = f"expected seconds from 0 to {LONGEST}"
            raise Refused(f"{option} {params[option]}", "check a stun", cause)


def findings_of(api: connection.Api, params: runner.Params) -> runner.Result:
    """Return the reasons for which a job would end while its nodes move."""
    cluster = cluster_objects(api, params)
    all_findings = findings.as_dicts(preflight.findings(cluster, moved_job(params, cluster, api)))
    return {
        "findings": all_findings,
        "stops": findings.stops(all_findings, params["accept"]),
        "lines": findings.lines(all_findings, params["accept"]),
        "grace_seconds": preflight.grace(cluster),
    }


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    check(params)
    server = connection.Api(params["kubeconfig"], params["context"])
    read = {"job": job_of, "findings": findings_of}
    parts = [read[part](server, params) for part in params["gather"]]
    return {"changed": False, **{key: value for part in parts for key, value in part.items()}}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
