#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the training jobs that run on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_jobs_info
short_description: Find the training jobs of this collection that run on a node
version_added: 1.0.0
description:
  - Reads the environment of the processes of the node, also of those in containers and pods, and returns the jobs of
    M(dml.vsphere.training_job) and of Kubernetes to which they belong.
  - Users other than root see only their own jobs.
options:
  name:
    description: The name of a run, to return only this one.
    type: str
  ignored:
    description: A regular expression; jobs whose names match it from their beginning are not returned.
    type: str
  reach:
    description: The words of the command with which the controller reaches the node, to return them with the jobs.
    type: list
    elements: str
  node:
    description: The name of the node in Kubernetes, to return it with the jobs; by default its host name in lower case.
    type: str
  manifest:
    description: The run directory whose manifest to return as text.
    type: path
  port:
    description: A TCP port; the first free one of this and the next 99 ports is returned.
    type: int
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_job
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the training jobs that run on the node
  dml.vsphere.training_jobs_info:
  register: training_jobs
  become: true

- name: Require a node without training jobs
  ansible.builtin.assert:
    that: training_jobs.jobs | length == 0
    fail_msg: "{{ training_jobs.jobs | map(attribute='title') | join(', ') }}"
"""

RETURN = r"""
jobs:
  description: The jobs that run on the node.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The name of the run., type: str}
    run_dir: {description: The run directory., type: str}
    run_id: {description: "The value of C(DML_RUN_ID) of its processes, empty on Kubernetes.", type: str}
    user: {description: The user of its processes., type: str}
    asked_by: {description: "Who started the run, as C(user@controller), empty if unknown.", type: str}
    started: {description: "The start of its first process on the node, in seconds since 1970.", type: float}
    step: {description: "The last step of the ranks on the node, V(null) if unknown.", type: int}
    launched_here: {description: Whether the node is the launcher., type: bool}
    title: {description: The job in words., type: str, sample: "long1 of anna since 2026-01-02 04:16 UTC (step 2127)"}
    processes:
      description: Its processes on the node.
      type: list
      elements: dict
      contains:
        pid: {description: The number of the process., type: int}
        start: {description: The start of the process in kernel ticks since boot., type: int}
manifest:
  description: The manifest in O(manifest), empty if it is missing or too large.
  returned: if O(manifest)
  type: str
free_port:
  description: The first free TCP port from O(port) on.
  returned: if O(port)
  type: int
node:
  description: The name of the node in Kubernetes, if the node is a node of Kubernetes.
  returned: success
  type: str
reach:
  description: The option O(reach).
  returned: success
  type: list
  elements: str
"""

import os
import re
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.core import regular_file
from ..module_utils.errors import Failed, Refused
from ..module_utils.training import manifest
from ..module_utils.training.guest import daemon_ports
from ..module_utils.training.guest.node_jobs import node_jobs
from ..module_utils.training.mpirun import LaunchError

ARGUMENTS = {
    "name": {"type": "str"},
    "ignored": {"type": "str"},
    "reach": {"type": "list", "elements": "str"},
    "node": {"type": "str"},
    "port": {"type": "int"},
    "manifest": {"type": "path"},
}


def selected(jobs: list[dict[str, Any]], name: str | None, ignored: str | None) -> list[dict[str, Any]]:
    """Return the jobs that the options select."""
    try:
        pattern = re.compile(ignored) if ignored else None
    except re.error as error:
        raise Refused("the node", "find its training jobs", f"ignored is not a regular expression: {error}") from error
    named = [job for job in jobs if not name or job["name"] == name]
    return [job for job in named if pattern is None or not pattern.match(job["name"])]


def free_port(first: int | None) -> dict[str, Any]:
    """Return the first free port; empty if none is asked for."""
    try:
        return {"free_port": daemon_ports.first_free(first)} if first else {}
    except LaunchError as error:
        raise Refused("the node", "find a free port", str(error), "set another training_port") from error


def manifest_in(run_dir: str | None) -> dict[str, str]:
    """Return the manifest in a run directory, whose owner may replace it; empty if none is asked for."""
    if not run_dir:
        return {}
    path = os.path.join(run_dir, manifest.FILE)
    try:
        text = regular_file.content(path, manifest.MOST_BYTES, os.O_NOFOLLOW).decode("utf-8", "replace")
    except OSError:
        text = ""
    return {"manifest": text}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    try:
        found = node_jobs()
    except OSError as error:
        raise Failed("the node", f"read {error.filename}", str(error.strerror)) from error
    jobs = selected(found, params["name"], params["ignored"])
    node = params["node"] or os.uname().nodename.lower()
    found_here = {**free_port(params["port"]), **manifest_in(params["manifest"])}
    return {"changed": False, "jobs": jobs, "node": node, "reach": params["reach"] or [], **found_here}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
