#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the lock that keeps two controllers from working on one cluster at once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lock
short_description: Keep other controllers from working on a cluster at the same time
version_added: 1.0.0
description:
  - Takes, renews and releases a lock in vCenter, which every run of this collection honours. vSphere, other users and
    other tools do not use the lock.
  - A lock has an owner and expires at a time on vCenter's clock, so that a run that died does not hold it
    indefinitely. To renew it, run the module again before each long step. M(dml.vsphere.esxi_power),
    M(dml.vsphere.esxi_profile), M(dml.vsphere.vmotion) and M(dml.vsphere.worker_vm) renew the locks of their run while
    they work, even during a boot or a clone that takes longer than O(ttl).
  - The module takes over a lock, with a warning, if it has expired, or if its holder ran on this machine and that
    process has ended. It does not take over a lock whose holder runs on this machine, even if the lock has expired.
  - The lock consists of folders named C(dml.vsphere.lock ID) next to the cluster. ID is the id of the cluster, such as
    C(domain-c8). One small folder remains when the lock is free, until O(state=absent). The account needs the
    privileges C(Folder.Create), C(Folder.Rename) and C(Folder.Delete) there.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
  state:
    description:
      - V(held) takes or renews the lock for this run, V(free) releases it.
      - V(absent) takes the lock and removes its folder, so that vCenter keeps no trace of it.
    type: str
    choices: [held, free, absent]
    default: held
  ttl:
    description: Seconds until the lock expires. The module renews it when less than nine tenths of them are left.
    type: int
    default: 7200
  run:
    description:
      - The id of this run. The default is derived from the ansible command that runs the module, so that all tasks of
        one run share the lock.
    type: str
  owner: {description: The holder that others see. The default is the user and the machine., type: str}
  note:
    description: The progress of the run, for people who read the lock. A renewal without it keeps the last one.
    type: str
  force_unlock:
    description:
      - Take or free the lock even if another run holds it. A warning and the result name the run that held it.
        Use this only if you are certain that the other run has ended.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - As with every lock that expires, a run that was suspended for longer than O(ttl) detects the loss of the lock only
    at the next renewal.
seealso:
  - module: dml.vsphere.esxi_power
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Lock the cluster for two hours
  dml.vsphere.cluster_lock:
    cluster: gpu

- name: Free the lock
  dml.vsphere.cluster_lock:
    cluster: gpu
    state: free

- name: Free the lock of a run that has certainly ended, and return its holder
  dml.vsphere.cluster_lock:
    cluster: gpu
    state: free
    force_unlock: true
  register: unlocked
"""

RETURN = r"""
state:
  description: The holder of the lock; in check mode, the holder after a real run.
  returned: success
  type: dict
  contains:
    held: {description: Whether a run holds the lock., type: bool}
    owner: {description: The holder., type: str, sample: alice@controller}
    run: {description: The holder's run., type: str, sample: controller.4711.987654}
    since: {description: The time at which the run took the lock., type: str, sample: "2026-01-02T03:04:05Z"}
    folder: {description: "With O(state=absent), whether vCenter has a folder of the lock.", type: bool}
    until: {description: The time at which the lock expires., type: str, sample: "2026-01-02T05:04:05Z"}
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.maintenance.lock import cluster_lock
from ..module_utils.vsphere import session

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "state": {"type": "str", "choices": list(cluster_lock.STATES), "default": "held"},
    "ttl": {"type": "int", "default": 7200},
    "run": {"type": "str"},
    "owner": {"type": "str"},
    "note": {"type": "str"},
    "force_unlock": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    desired = cluster_lock.lock_request(params)
    with session.session(params) as opened:
        lock = cluster_lock.ClusterLock(opened, params["cluster"], params["state"], desired)
        return runner.converge_one(module, lock)


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
