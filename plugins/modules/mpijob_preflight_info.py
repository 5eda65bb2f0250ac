#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the conditions in a Kubernetes cluster that would end a job while vMotion moves its nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mpijob_preflight_info
short_description: Check whether a Kubernetes cluster would end a job while vMotion moves its nodes
version_added: 1.0.0
description:
  - Reads the nodes, pods and PodDisruptionBudgets of a Kubernetes cluster, with O(pvrdma) also its ConfigMaps, and if
    O(needs) contains GPUs of NVIDIA also the ClusterPolicy of the GPU Operator. Compares them with a job whose nodes
    vMotion will move. It writes nothing.
  - The rules are V(toleration) (pods that do not tolerate a stun), V(node_grace) (a stun that Kubernetes will detect),
    V(node) (a node that is missing, not ready or cordoned), V(control_plane) (an API server or etcd on a node that
    vMotion moves), V(operator), V(resource) (fewer devices than workers), V(disruption_budget), V(rdma_vendor) (a
    device plugin that excludes PVRDMA), and V(gpu_operator) (GPUs that containers get through CDI, on which pods can
    fail in guests of ESX).
options:
  moved:
    description: The Kubernetes names of the nodes that vMotion moves.
    type: list
    elements: str
    required: true
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
  name:
    description: The name of the MPIJob, if it exists already.
    type: str
  namespace:
    description: The namespace of the MPIJob.
    type: str
    default: default
  needs:
    description: The number of units of each extended resource that a worker requests, by the name of the resource.
    type: dict
    default: {}
  pvrdma:
    description: Whether the workers have PVRDMA.
    type: bool
    default: false
  accept:
    description: Findings to accept although they are stops, as RULE or RULE:OBJECT.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.kubernetes
seealso:
  - module: dml.vsphere.mpijob_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Check whether the moves of its nodes would end a job
  dml.vsphere.mpijob_preflight_info:
    moved: [worker01, worker02]
    needs: {nvidia.com/gpu: 1}
  delegate_to: localhost
  register: preflight

- name: Require that no finding stops the moves
  ansible.builtin.assert:
    that: preflight.stops | length == 0
    fail_msg: "{{ preflight.lines | join('\n') }}"
"""

RETURN = r"""
findings:
  description: The findings, each with C(severity) (V(stop), V(warn) or V(note)), C(rule), C(object) and C(text).
  returned: success
  type: list
  elements: dict
stops:
  description: The findings that stop and are not accepted.
  returned: success
  type: list
  elements: dict
lines:
  description: The findings as text, one line each.
  returned: success
  type: list
  elements: str
grace_seconds:
  description: Seconds of silence after which this Kubernetes reports a node as not ready.
  returned: success
  type: float
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.core import findings
from ..module_utils.errors import Failed, Refused
from ..module_utils.kubernetes import gpu_operator, preflight
from ..module_utils.kubernetes.api import connection, jobs

# A day: a longer stun is a mistake in the unit.
LONGEST = 86400
ARGUMENTS = {
    **connection.arguments(),
    "moved": {"type": "list", "elements": "str", "required": True},
    "at_once": {"type": "bool", "default": False},
    "stun_seconds": {"type": "float", "default": 100},
    "toleration_seconds": {"type": "float"},
    "name": {"type": "str"},
    "namespace": {"type": "str", "default": "default"},
    "needs": {"type": "dict", "default": {}},
    "pvrdma": {"type": "bool", "default": False},
    "accept": {"type": "list", "elements": "str", "default": []},
}


def cluster_objects(api: connection.Api, params: dict[str, Any]) -> preflight.ClusterObjects:
    """Read the objects of the cluster, with one call for each kind."""
    policies, cause = gpu_policies(api) if gpu_operator.is_needed(params["needs"]) else ([], "")
    return preflight.ClusterObjects(
        version=str((api.get("/version") or {}).get("gitVersion") or ""),
        nodes=api.items("/api/v1/nodes"),
        pods=api.items("/api/v1/pods"),
        budgets=api.items("/apis/policy/v1/poddisruptionbudgets"),
        config_maps=api.items("/api/v1/configmaps") if params["pvrdma"] else (),
        gpu_policies=policies,
        gpu_policies_unread=cause,
    )


def gpu_policies(api: connection.Api) -> tuple[list[dict[str, Any]], str]:
    """Return the policies of the GPU Operator, and the cause if this account cannot read them."""
    try:
        return api.items(gpu_operator.POLICIES), ""
    except Failed as error:
        return [], error.reason


def moved_job(params: dict[str, Any], cluster: preflight.ClusterObjects, api: connection.Api) -> preflight.MovedJob:
    """Return the job from the options, with the toleration of its pods if it exists."""
    given, stun = params["toleration_seconds"], params["stun_seconds"]
    namespace, name = params["namespace"], params["name"]
    needs = {str(name): int(count) for name, count in params["needs"].items()}
    pods = preflight.pods_of(cluster, namespace, name, jobs.owners(api, namespace, name)) if name else []
    tolerates = given
    if given is None:
        tolerates = preflight.least_tolerated(pods) if pods else preflight.toleration(stun)
    moved, at_once = params["moved"], params["at_once"]
    return preflight.MovedJob(moved, stun, tolerates, needs, len(moved), params["pvrdma"], at_once)


def check(params: dict[str, Any]) -> None:
    """Raise Refused for an invalid duration."""
    for option in ("stun_seconds", "toleration_seconds"):
        if params[option] is not None and not 0 <= params[option] <= LONGEST:
            cause = f"expected seconds from 0 to {LONGEST}"
            raise Refused(f"{option} {params[option]}", "check a stun", cause)


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    check(params)
    api = connection.Api(params["kubeconfig"], params["context"])
    cluster = cluster_objects(api, params)
    all_findings = findings.as_dicts(preflight.findings(cluster, moved_job(params, cluster, api)))
    return {
        "changed": False,
        "findings": all_findings,
        "stops": findings.stops(all_findings, params["accept"]),
        "lines": findings.lines(all_findings, params["accept"]),
        "grace_seconds": preflight.grace(cluster),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
