#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what in a Kubernetes would end a job while its nodes are moved."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mpijob_preflight_info
short_description: Find what in a Kubernetes would end a job while its nodes are moved
version_added: 1.0.0
description:
  - Reads the nodes, pods and PodDisruptionBudgets of a Kubernetes, with O(pvrdma) its ConfigMaps too, and compares them
    with a job whose nodes vMotion will move. It writes nothing.
  - The rules are V(toleration) (pods that do not tolerate a stun), V(node_grace) (a stun that Kubernetes will notice),
    V(node) (a node that is not there, not ready or cordoned), V(control_plane) (an API server or etcd on a node that is
    moved), V(operator), V(resource) (fewer devices than workers), V(disruption_budget), and V(rdma_vendor) (a device
    plugin that leaves PVRDMA out).
options:
  moved:
    description: The names of the nodes that are moved, as Kubernetes knows them.
    type: list
    elements: str
    required: true
  stun_seconds:
    description: Seconds for which a node may not answer while vMotion moves it.
    type: float
    default: 100
  toleration_seconds:
    description:
      - The C(tolerationSeconds) of the job's pods. By default the least that a pod of the job O(name) has, and where
        there is no such job what the role P(dml.vsphere.mpijob#role) gives.
    type: float
  name:
    description: The name of the MPIJob, if it is there already.
    type: str
  namespace:
    description: Its namespace.
    type: str
    default: default
  needs:
    description: By name of an extended resource how many of it a worker takes.
    type: dict
    default: {}
  pvrdma:
    description: Whether the workers have PVRDMA.
    type: bool
    default: false
  accept:
    description: Findings that do not stop, by their rule, or as RULE:OBJECT.
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
- name: Find what would end a job while its nodes are moved
  dml.vsphere.mpijob_preflight_info:
    moved: [worker01, worker02]
    needs: {nvidia.com/gpu: 1}
  delegate_to: localhost
  register: found

- name: Require that no finding stops the moves
  ansible.builtin.assert:
    that: found.stops | length == 0
    fail_msg: "{{ found.lines | join('\n') }}"
"""

RETURN = r"""
findings:
  description: The findings, each with C(severity) (V(stop), V(warn) or V(note)), C(rule), C(object) and C(text).
  returned: success
  type: list
  elements: dict
stops:
  description: Those that stop and were not accepted.
  returned: success
  type: list
  elements: dict
lines:
  description: The findings to read.
  returned: success
  type: list
  elements: str
grace_seconds:
  description: Seconds of silence after which this Kubernetes calls a node not ready.
  returned: success
  type: float
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.core import findings
from ..module_utils.errors import Refused
from ..module_utils.kubernetes import preflight
from ..module_utils.kubernetes.api import cluster_objects, connection

# A day: a stun that lasts longer is a mistake in the unit.
LONGEST = 86400
ARGUMENTS = {
    **connection.arguments(),
    "moved": {"type": "list", "elements": "str", "required": True},
    "stun_seconds": {"type": "float", "default": 100},
    "toleration_seconds": {"type": "float"},
    "name": {"type": "str"},
    "namespace": {"type": "str", "default": "default"},
    "needs": {"type": "dict", "default": {}},
    "pvrdma": {"type": "bool", "default": False},
    "accept": {"type": "list", "elements": "str", "default": []},
}


def desired_of(params: dict[str, Any], found: preflight.Site) -> preflight.Desired:
    """The job that the options describe, and that is there."""
    given, stun = params["toleration_seconds"], params["stun_seconds"]
    needs = {str(name): int(count) for name, count in params["needs"].items()}
    pods = preflight.pods_of(found, params["namespace"], params["name"]) if params["name"] else []
    tolerates = given
    if given is None:
        tolerates = preflight.least_tolerated(pods) if pods else preflight.toleration(stun)
    return preflight.Desired(params["moved"], stun, tolerates, needs, len(params["moved"]), params["pvrdma"])


def check(params: dict[str, Any]) -> None:
    """Raise Refused for a time that is none."""
    for option in ("stun_seconds", "toleration_seconds"):
        if params[option] is not None and not 0 <= params[option] <= LONGEST:
            said = f"expected seconds from 0 to {LONGEST}"
            raise Refused(f"{option} {params[option]}", "judge a stun", said)


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    check(params)
    found = cluster_objects.read(
        connection.Api(params["kubeconfig"], params["context"]), configurations=params["pvrdma"]
    )
    told = findings.as_dicts(preflight.findings(found, desired_of(params, found)))
    return {
        "changed": False,
        "findings": told,
        "stops": findings.stops(told, params["accept"]),
        "lines": findings.lines(told, params["accept"]),
        "grace_seconds": preflight.grace(found),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
