#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a teardown of a cluster removes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: teardown_info
short_description: List what a teardown of a cluster removes, and what prevents it
version_added: 1.0.0
description:
  - Finds everything in a cluster that has the mark of this collection. It finds workers and clones of interrupted
    runs, rules and overrides, the RDMA network, unused custom attributes, and the folder of the cluster's lock. The
    role C(teardown) removes exactly these objects.
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  rules_name:
    description: The set of workers whose rules and overrides are removed, as O(dml.vsphere.worker_rules#module:name).
    type: str
    default: workers
  switch:
    description: Name of the distributed switch for RDMA.
    type: str
    default: rdma
  record_dir:
    description: Folder on the controller in which the role C(fabric) keeps the old values of shared settings.
    type: path
  evidence:
    description: File on the controller with the old state of the hosts, if they are to be restored.
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.rdma_fabric_info
  - module: dml.vsphere.worker_vm_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read what a teardown of cluster gpu removes
  dml.vsphere.teardown_info:
    cluster: gpu
  register: teardown

- name: Show what a teardown of cluster gpu removes
  ansible.builtin.debug:
    msg: "{{ teardown.lines }}"
"""

RETURN = r"""
any:
  description: Whether there is anything to remove or to restore.
  returned: success
  type: bool
lines:
  description: The steps of the teardown in their order, as lines to show.
  returned: success
  type: list
  elements: str
  sample: ["delete worker01, worker02 with their disks", "remove the switch rdma"]
rules:
  description: Whether there are rules and overrides of workers.
  returned: success
  type: bool
delete:
  description: Names of the virtual machines to delete.
  returned: success
  type: list
  elements: str
unmark:
  description: Names of the adopted workers, which only lose their mark.
  returned: success
  type: list
  elements: str
untag:
  description: Names of the hosts whose tag for PVRDMA is on an adapter that is removed.
  returned: success
  type: list
  elements: str
fabric:
  description: Whether there is an RDMA network that this collection built.
  returned: success
  type: bool
switch:
  description: Name of the distributed switch for RDMA.
  returned: success
  type: str
hosts:
  description: The file with the old state of the hosts; empty if they are not restored.
  returned: success
  type: str
settings:
  description: The file with the old values of shared settings; empty if none exists.
  returned: success
  type: str
record_dir:
  description: The folder of O(record_dir).
  returned: success
  type: str
traces:
  description: The existing ones of C(attributes) and C(lock).
  returned: success
  type: list
  elements: str
refused:
  description: The other users of the objects to remove, as a sentence; empty if none exist.
  returned: success
  type: str
unconfirmed:
  description: The steps as the sentence that an unconfirmed teardown shows.
  returned: success
  type: str
left:
  description: The remaining objects, as the error of an incomplete teardown; empty if none exist.
  returned: success
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.cluster.attributes import Attributes
from ..module_utils.fabric.fabric import Fabric
from ..module_utils.fabric.fabric_spec import FabricSpec
from ..module_utils.hosts.rollback import teardown
from ..module_utils.maintenance.lock import cluster_lock
from ..module_utils.vsphere import session
from ..module_utils.vsphere.escaped_names import file_name
from ..module_utils.workers import existing_workers
from ..module_utils.workers.rules import rule_options
from ..module_utils.workers.rules.worker_rules import WorkerRules

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "rules_name": {"type": "str", "default": "workers"},
    "switch": {"type": "str", "default": "rdma"},
    "record_dir": {"type": "path"},
    "evidence": {"type": "str", "default": ""},
}


def due(opened: session.Session, params: dict[str, Any]) -> dict[str, bool]:
    """Return whether rules, custom attributes and the lock exist and can be removed."""
    cluster, gone = params["cluster"], {"state": "absent", "name": params["rules_name"]}
    # Whether another run holds the lock matters only to the run that takes it, before its first write.
    asking = cluster_lock.lock_request({"ttl": 0, "force_unlock": True})
    subjects: dict[str, Any] = {
        "rules": WorkerRules(opened, cluster, rule_options.rule_set_spec(gone)),
        "attributes": Attributes(opened, cluster),
        "lock": cluster_lock.ClusterLock(opened, cluster, "absent", asking),
    }
    return {name: bool(subject.plan(subject.read()).due) for name, subject in subjects.items()}


def record_of(cluster: str, folder: str | None) -> str:
    """Return the file with the old values of shared settings of a cluster, or an empty text."""
    record = Path(folder or "") / f"{file_name(cluster)}-shared-settings.json"
    return str(record) if folder and record.is_file() else ""


def body(module: AnsibleModule) -> dict[str, Any]:
    params, cluster = module.params, module.params["cluster"]
    given = {key: params[key] for key in ("cluster", "switch", "evidence", "record_dir")}
    with session.session(params) as opened:
        read = {
            "workers": existing_workers.read_workers(opened, [cluster]),
            "unfinished": existing_workers.unfinished_clones(opened, cluster),
            "fabric": Fabric(opened, FabricSpec(cluster, params["switch"])).info(),
            "due": due(opened, params),
            "record": record_of(cluster, params["record_dir"]),
        }
    return {"changed": False, **teardown.plan({**given, **read})}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
