#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: DRS rules, and DRS and HA overrides of worker VMs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_rules
short_description: Keep worker VMs on separate or chosen hosts, and set their DRS and HA overrides
version_added: 1.0.0
description:
  - Sets the rules of a set of workers with one reconfiguration of the cluster. The rules are a DRS rule that keeps the
    workers on separate hosts, a rule that keeps them on chosen hosts, and, for each worker, overrides of DRS's
    automation level and of HA's restart priority.
  - A call describes the whole set. The module removes rules and overrides that it set before and that the call does
    not contain. If a marked worker of the set is in neither O(workers) nor O(drop), the module refuses the call and
    names the worker, because it may belong to another inventory.
  - The module identifies the rules and groups of a set by their names, which start with C(dml.vsphere) and the name of
    the set. It records existing overrides in the mark of the worker, and restores them on removal.
  - If a call contradicts another user's rule, the module refuses it before the first write and names that rule. Such
    a rule keeps two of the workers on one host, or allows too few hosts for them.
  - vCenter removes a deleted worker from rules and overrides; remove it from O(workers) or build it again.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
  name:
    description: Name of the set. A cluster may have several, each with its own rules.
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
      - Names of the workers. They must have the mark of M(dml.vsphere.worker_vm), which builds or adopts workers.
        Check mode continues if some do not exist yet.
    type: list
    elements: str
    default: []
  drop:
    description: Workers that leave the set and lose its rules and overrides. They must not be in any other option.
    type: list
    elements: str
    default: []
  one_per_host:
    description: Whether DRS keeps each worker on a separate host. A single worker needs no such rule.
    type: bool
    default: true
  hosts:
    description: Hosts on which DRS keeps the workers. Empty means any host.
    type: list
    elements: str
    default: []
  host_affinity:
    description:
      - Whether O(hosts) are preferred, or the only hosts on which the workers can run, including after an HA restart.
      - If another user's rule forbids all preferred hosts, the module warns and stores the rule.
    type: str
    choices: [preferred, required]
    default: preferred
  drs_override:
    description:
      - The DRS automation level of each worker, instead of the cluster's. With V(manual) and V(partially_automated),
        DRS does not move workers, whose guests are stunned in a move if they have a vGPU. With V(disabled), DRS also
        does not place them at power-on.
    type: str
    choices: [manual, partially_automated, fully_automated, disabled]
  restart_priority:
    description: The HA restart priority of each worker, instead of the cluster's.
    type: str
    choices: [disabled, lowest, low, medium, high, highest]
  overrides:
    description: Overrides of single workers, which take precedence over O(drs_override) and O(restart_priority).
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: "The worker, one of O(workers).", type: str, required: true}
      drs_override:
        description: Like O(drs_override).
        type: str
        choices: [manual, partially_automated, fully_automated, disabled]
      restart_priority:
        description: Like O(restart_priority).
        type: str
        choices: [disabled, lowest, low, medium, high, highest]
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - A warning names settings that the cluster stores but does not apply, because DRS or HA is off.
  - If DRS is fully automated, it moves running workers that violate a new rule. A warning names them.
  - If M(dml.vsphere.worker_vm) removes the mark of an adopted worker, the record of its previous overrides is lost.
    Run this module with O(state=absent) first.
seealso:
  - module: dml.vsphere.worker_vm
  - module: dml.vsphere.shared_settings
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Keep each worker on a separate host, without DRS moves, with a high restart priority
  dml.vsphere.worker_rules:
    cluster: gpu
    workers: [worker01, worker02, worker03, worker04]
    drs_override: manual
    restart_priority: high

- name: Keep the workers of a tenant on three hosts
  dml.vsphere.worker_rules:
    cluster: gpu
    name: vision
    workers: [vision01, vision02]
    hosts: [esx01.lab, esx02.lab, esx03.lab]
    host_affinity: required
    overrides:
      - {name: vision01, restart_priority: highest}

- name: Remove all rules and overrides of the set
  dml.vsphere.worker_rules:
    cluster: gpu
    name: vision
    state: absent
"""

RETURN = r"""
state:
  description: The rules and overrides of the set; in check mode, the planned ones.
  returned: success
  type: dict
  contains:
    one_per_host: {description: "The rule's C(workers), and whether it is C(enabled); V(null) for none.", type: dict}
    affinity: {description: "C(workers) and C(hosts), C(rule) is V(preferred) or V(required).", type: dict}
    drs: {description: "The DRS override of each worker; V(null) for none.", type: dict}
    restart_priority: {description: "The restart priority of each worker; V(null) for none.", type: dict}
    previous: {description: The overrides to restore on removal., type: dict}
  sample:
    one_per_host: {workers: [worker01, worker02], enabled: true}
    affinity: null
    drs: {worker01: manual, worker02: manual}
    restart_priority: {worker01: null, worker02: null}
    previous: {worker01: {drs: null}, worker02: {drs: null}}
unmet:
  description: The reasons that prevent the plan now, such as workers that do not exist yet.
  returned: success
  type: list
  elements: str
"""


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


def body(module: AnsibleModule) -> runner.Result:
    desired = rule_options.rule_set_spec(module.params)
    with session.session(module.params) as opened:
        return runner.converge_one(module, WorkerRules(opened, module.params["cluster"], desired))


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
