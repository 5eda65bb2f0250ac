#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the training runs on several nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_runs_info
short_description: List the training runs on the workers
version_added: 1.0.0
description:
  - Runs on the controller, and combines the results of M(dml.vsphere.training_jobs_info) of several nodes with the
    manifests of M(dml.vsphere.training_manifest).
options:
  results:
    description: The folder on the controller with the folders of the runs.
    type: path
  compare:
    description: The names of two runs in O(results) to compare.
    type: list
    elements: str
    default: []
  nodes:
    description: The result of M(dml.vsphere.training_jobs_info) by the name of the node in the inventory.
    type: dict
    required: true
  single:
    description: Whether to fail if several runs train, and to return the connections for watching the only one.
    type: bool
    default: false
  name:
    description: The name of the runs to return, by default of any.
    type: str
    default: ""
  watched:
    description: The nodes with records, by default all O(nodes).
    type: list
    elements: str
  kubernetes:
    description:
      - For jobs on Kubernetes, the C(namespace), C(kubeconfig), C(context) and C(api) of the only run, as options of
        M(dml.vsphere.mpijob_info). Its launcher is then a pod, and not one of O(nodes).
    type: dict
  user:
    description: The user with whom the tasks reach the launcher, to return it.
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_jobs_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: List the training runs on two nodes
  dml.vsphere.training_runs_info:
    nodes:
      worker01: "{{ hostvars.worker01.training_jobs }}"
      worker02: "{{ hostvars.worker02.training_jobs }}"
  delegate_to: localhost
"""

RETURN = r"""
entries:
  description:
    - The runs on the nodes and those in O(results), each with C(name), C(by), C(started), C(state), C(step), C(nodes),
      C(rate) and C(cause). The state is V(unknown) if no controller followed the run to its end.
  returned: success
  type: list
  elements: dict
lines:
  description: The entries as a table, or the differences of the runs in O(compare).
  returned: success
  type: list
  elements: str
runs:
  description: The runs, each with the keys of RV(dml.vsphere.training_jobs_info#module:jobs) and those below.
  returned: success
  type: list
  elements: dict
  contains:
    nodes: {description: The nodes on which it runs., type: list, elements: str}
    launcher: {description: "The node of C(mpirun), empty if no node is.", type: str}
launcher:
  description: The launcher of the only run, empty with O(kubernetes).
  returned: if O(single) and a run trains
  type: str
run_dir:
  description: The run directory of the only run.
  returned: if O(single) and a run trains
  type: str
nodes:
  description: The nodes to watch, each with C(name) and C(reach).
  returned: if O(single) and a run trains
  type: list
  elements: dict
user:
  description: The option O(user).
  returned: if O(single) and a run trains
  type: str
kubernetes:
  description:
    - The option O(kubernetes) with C(names), the nodes by their names in Kubernetes. Without the option, it is empty.
  returned: if O(single) and a run trains
  type: dict
why:
  description: Why no run was found, with the runs that train and the nodes that did not answer.
  returned: if O(single) and no such run trains
  type: str
found:
  description: Always true; a job that was started for a test has no such key.
  returned: if O(single) and a run trains
  type: bool
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.training import busy, manifest, run_list
from ..module_utils.training.reports import saved_manifests

ARGUMENTS = {
    "results": {"type": "path"},
    "compare": {"type": "list", "elements": "str", "default": []},
    "nodes": {"type": "dict", "required": True},
    "single": {"type": "bool", "default": False},
    "name": {"type": "str", "default": ""},
    "watched": {"type": "list", "elements": "str"},
    "user": {"type": "str", "default": ""},
    "kubernetes": {"type": "dict"},
}


def single(runs: list[dict[str, Any]], params: dict[str, Any]) -> dict[str, Any]:
    """Return the connections to the only run; without one, ``why`` says why."""
    if len(runs) > 1:
        names = ", ".join(run["name"] for run in runs)
        raise Refused("the workers", "choose the training run", f"{names} run there", "choose one by its name")
    if not runs:
        return {"why": busy.why_no_run(params["name"], params["nodes"])}
    pods = params["kubernetes"]
    if pods is None and not runs[0]["launcher"]:
        remedy = "include all its nodes; for a job on Kubernetes, set training_backend to kubernetes"
        raise Refused("the workers", f"find the launcher of {runs[0]['name']}", "no node has its run file", remedy)
    nodes = params["nodes"]
    watched = [name for name in (params["watched"] or nodes) if name in nodes]
    places = [{"name": name, "reach": nodes[name].get("reach", [])} for name in watched]
    where = {key: runs[0][key] for key in ("launcher", "run_dir")}
    return {**where, "nodes": places, "user": params["user"], "kubernetes": _place(pods, nodes), "found": True}


def _place(pods: dict[str, Any] | None, nodes: dict[str, Any]) -> dict[str, Any]:
    if pods is None:
        return {}
    names = {answer["node"]: name for name, answer in nodes.items() if "node" in answer}
    return {**{key: value for key, value in pods.items() if value}, "names": names}


def compared(names: list[str], results: str | None) -> list[str]:
    """Return the differences between two runs."""
    if len(names) != 2 or not results:
        remedy = "name two: -e training_compare=ONE,OTHER"
        raise Refused(", ".join(names), "compare training runs", f"{len(names)} runs are named", remedy)
    one, other = (saved_manifests.read(Path(results, name)) for name in names)
    return manifest.compared(one, other)


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    runs = [run for run in busy.running(params["nodes"]) if params["name"] in ("", run["name"])]
    found = single(runs, params) if params["single"] else {}
    manifests, errors = saved_manifests.read_all(Path(params["results"])) if params["results"] else ([], [])
    silent = [name for name, answer in params["nodes"].items() if "jobs" not in answer]
    entries = run_list.listed(runs, manifests, silent)
    lines = compared(params["compare"], params["results"]) if params["compare"] else run_list.lines(entries)
    return {"changed": False, "runs": runs, "entries": entries, "lines": lines, "warnings": errors, **found}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
