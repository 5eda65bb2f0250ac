#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the state of the maintenance window of a cluster, and requests to it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: maintenance_window
short_description: Show the maintenance window of a cluster, or ask it to pause, to resume or to end
version_added: 1.0.0
description:
  - A maintenance window, which M(dml.vsphere.esxi_window) carries out, holds the lock of the cluster. The module
    writes the request into the record of that lock in vCenter, so that it can run on another controller. The window
    finishes the current host, then reads the request before it starts the next one.
  - The state names the hosts that a run took out of service, and how to return those that no run continues.
  - With O(dir), it contains the hosts of the window, the workers away from home and the folder of an unfinished window
    of this controller.
options:
  cluster: {description: The name of the cluster., type: str, required: true}
  action:
    description:
      - V(status) only reads. V(pause) makes the window wait before the next host, V(resume) lets it continue, and
        V(end) ends it before the next host, with its verdict.
    type: str
    choices: [status, pause, resume, end]
    default: status
  dir: {description: The folder on this machine in which each window has a folder., type: path}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.cluster_lock
  - module: dml.vsphere.esxi_window
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Ask the maintenance window of cluster gpu to pause
  dml.vsphere.maintenance_window:
    cluster: gpu
    action: pause
"""

RETURN = r"""
lines: {description: The state of the window in sentences., returned: success, type: list, elements: str}
folder:
  description: The folder of an unfinished window of this controller that no run continues; empty if there is none.
  returned: success
  type: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.maintenance import cluster_problems
from ..module_utils.maintenance.lock import cluster_lock, own_lock
from ..module_utils.trials.folder import trial_folder, window_status
from ..module_utils.vsphere import session
from ..module_utils.vsphere.inventory import find_hosts
from ..module_utils.vsphere.properties import id_of

STATUS = "status"
ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "action": {"type": "str", "choices": [STATUS, "pause", "resume", "end"], "default": STATUS},
    "dir": {"type": "path"},
}


def body(module: AnsibleModule) -> runner.Result:
    cluster, where = module.params["cluster"], module.params["dir"]
    with session.session(module.params) as opened:
        request = cluster_lock.lock_request({"run": STATUS, "ttl": 0, "force_unlock": False})
        lock = cluster_lock.ClusterLock(opened, cluster, "held", request)
        identified = trial_folder.Cluster(cluster, lambda: (opened.uuid, id_of(lock.ref)))
        folder = window_status.unfinished(Path(where), identified) if where else None
        before = record_of(lock)
        is_left = folder is not None and (not before["held"] or bool(before["over"]))
        result = requested(module, lock, is_left)
        hosts = find_hosts(opened, {"cluster": cluster}, cluster_problems.PATHS)
        hosts.refresh()
        out = cluster_problems.out_of_service(opened, hosts.hosts)
        lines = list(window_status.lines(cluster, record_of(lock), folder, out))
    return {**result, "lines": lines, "folder": str(folder) if is_left else ""}


def record_of(lock: cluster_lock.ClusterLock) -> runner.Result:
    """Return the record of the lock as it is now."""
    lock.read()
    return cluster_lock.record_at(lock.lock_state.record, lock.now)


def requested(module: AnsibleModule, lock: cluster_lock.ClusterLock, is_left: bool) -> runner.Result:
    """Write the request, unless the window has no run that would read it: the playbook then ends the window itself."""
    action = module.params["action"]
    if action == STATUS or (is_left and action == own_lock.END):
        return {"changed": False}
    return runner.converge_one(module, own_lock.WindowRequest(lock, action))


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
