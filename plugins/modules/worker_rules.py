#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: DRS rules, and DRS and HA overrides of worker VMs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_rules
short_description: Keep worker VMs apart or on chosen hosts, and give them DRS and HA overrides
version_added: 1.0.0
description:
  - Sets the rules of a set of workers by one reconfiguration of the cluster. They are a DRS rule that keeps the workers
    on hosts of their own, a rule that keeps them on chosen hosts, and for each worker an override of DRS's automation
    and of HA's restart priority.
  - A call describes the whole set. Rules and overrides that this module set before and that the call lacks are
    removed. If a marked worker of the set is in neither O(workers) nor O(drop), the call is refused and names
    it, because it may belong to another inventory.
  - Rules and groups of a set are recognised by their names, which begin with C(dml.vsphere) and the name of the set.
    An override that existed before is recorded in the mark of the worker, and restored on removal.
  - A call that contradicts a rule of others is refused before the first write, with the name of that rule. Such a
    rule keeps two of the workers on one host, or leaves them too few hosts.
  - A worker that was deleted leaves rules and overrides by itself; leave it out of O(workers) or build it again.
options:
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  name:
    description: Name of the set. A cluster may have several, each with rules of its own.
    type: str
    default: workers
  state:
    description:
      - V(absent) removes the rules and overrides of the set, and restores the overrides that they replaced.
      - If V(absent) is set and O(workers) or O(drop) names workers, the set is removed only if it contains no others.
    type: str
    choices: [present, absent]
    default: present
  workers:
    description:
      - Names of the workers. They must carry the mark of M(dml.vsphere.worker_vm), which builds workers and takes them
        over. Check mode goes on where some do not exist yet.
    type: list
    elements: str
    default: []
  drop:
    description: Workers that leave the set and lose its rules and overrides. They may be in no other option.
    type: list
    elements: str
    default: []
  one_per_host:
    description: Whether DRS keeps each worker on a host of its own. A single worker needs no such rule.
    type: bool
    default: true
  hosts:
    description: Hosts on which DRS keeps the workers. Empty means any host.
    type: list
    elements: str
    default: []
  host_affinity:
    description:
      - Whether O(hosts) are preferred, or the only ones on which the workers can run, for HA too.
      - Where a rule of somebody else forbids all of the preferred hosts, that is a warning, and the rule is stored.
    type: str
    choices: [preferred, required]
    default: preferred
  drs_override:
    description:
      - What DRS does with each worker, other than the cluster's own way. V(manual) and V(partially_automated) keep it
        from moving workers, whose guests are stunned in a move when they have a vGPU. V(disabled) leaves them alone
        when they start, too.
    type: str
    choices: [manual, partially_automated, fully_automated, disabled]
  restart_priority:
    description: When HA restarts each worker after its host failed, other than the cluster's own priority.
    type: str
    choices: [disabled, lowest, low, medium, high, highest]
  overrides:
    description: Overrides of single workers, which win over O(drs_override) and O(restart_priority).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The worker, one of O(workers).
        type: str
        required: true
      drs_override:
        description: As O(drs_override).
        type: str
        choices: [manual, partially_automated, fully_automated, disabled]
      restart_priority:
        description: As O(restart_priority).
        type: str
        choices: [disabled, lowest, low, medium, high, highest]
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - A warning names settings that the cluster stores but does not apply, because DRS or HA is off.
  - A DRS that is automated moves running workers that break a new rule. A warning names them.
  - A worker that was taken over and is let go by M(dml.vsphere.worker_vm) loses its mark, and with it what was before
    its overrides. Run this module with O(state=absent) first.
seealso:
  - module: dml.vsphere.worker_vm
  - module: dml.vsphere.shared_settings
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Each worker on a host of its own, none moved by DRS, restarted first
  dml.vsphere.worker_rules:
    cluster: gpu
    workers: [worker01, worker02, worker03, worker04]
    drs_override: manual
    restart_priority: high

- name: Workers of a tenant on three hosts only
  dml.vsphere.worker_rules:
    cluster: gpu
    name: vision
    workers: [vision01, vision02]
    hosts: [esx01.lab, esx02.lab, esx03.lab]
    host_affinity: required
    overrides:
      - {name: vision01, restart_priority: highest}

- name: Take all of it away
  dml.vsphere.worker_rules:
    cluster: gpu
    name: vision
    state: absent
"""

RETURN = r"""
state:
  description: What the cluster holds for the set, in check mode what it would hold.
  returned: success
  type: dict
  contains:
    one_per_host: {description: "The rule's C(workers), and whether it is C(enabled); V(null) for none.", type: dict}
    affinity: {description: "C(workers) and C(hosts), C(rule) is V(preferred) or V(required).", type: dict}
    drs: {description: "The DRS override of each worker; V(null) for none.", type: dict}
    restart_priority: {description: "The restart priority of each worker; V(null) for none.", type: dict}
    previous: {description: What is restored when our overrides go., type: dict}
  sample:
    one_per_host: {workers: [worker01, worker02], enabled: true}
    affinity: null
    drs: {worker01: manual, worker02: manual}
    restart_priority: {worker01: null, worker02: null}
    previous: {worker01: {drs: null}, worker02: {drs: null}}
unmet:
  description: Why the plan cannot be carried out right now, such as workers that do not exist yet.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.vsphere import session
from ..module_utils.workers.rules import rule_options
from ..module_utils.workers.rules.worker_rules import WorkerRules

OVERRIDES = {
    "drs_override": {"type": "str", "choices": ["manual", "partially_automated", "fully_automated", "disabled"]},
    "restart_priority": {"type": "str", "choices": ["disabled", "lowest", "low", "medium", "high", "highest"]},
}
ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "name": {"type": "str", "default": "workers"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "workers": {"type": "list", "elements": "str", "default": []},
    "drop": {"type": "list", "elements": "str", "default": []},
    "one_per_host": {"type": "bool", "default": True},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "host_affinity": {"type": "str", "choices": ["preferred", "required"], "default": "preferred"},
    **OVERRIDES,
    "overrides": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {"name": {"type": "str", "required": True}, **OVERRIDES},
    },
}


def body(module: AnsibleModule) -> dict[str, Any]:
    wanted = rule_options.rule_set_spec(module.params)
    with session.session(module.params) as opened:
        return runner.converge_one(module, WorkerRules(opened, module.params["cluster"], wanted))


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
