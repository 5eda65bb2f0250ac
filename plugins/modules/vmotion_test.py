#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the folder and the settings of a vMotion test, which the action of the same name carries out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion_test
short_description: Move every worker in turn while a job trains, and say whether the job ran on
version_added: 1.0.0
description:
  - Plans the moves, watches the job, moves one worker after another, and judges the job after each move. It fails
    unless the job is continuous and every move took place. The role P(dml.vsphere.vmotion_test#role) gives it its
    options.
  - All that it observes goes into a journal in the folder of the test, C(journal.jsonl). The next step follows from the
    journal alone. A test whose controller was killed is taken up where it was, with the settings with which it began. A
    move that was begun is looked up on the server, and never begun twice.
  - The task is delegated to the host on which the job was started; everything else runs on the controller.
  - In check mode it shows the plan of the moves and writes nothing.
options:
  folder:
    description:
      - The folder of the test. Where a test in it was not ended, that test goes on. Empty to take up the test of this
        cluster in O(dir) that was not ended, if there is one, and else to make a new folder there.
    type: str
    default: ""
  cluster:
    description:
      - The cluster, by its name in vCenter.
    type: str
    required: true
  workers:
    description:
      - Names of the workers to move. Empty for all of the cluster.
    type: list
    elements: str
    default: []
  launcher:
    description:
      - The host of the inventory on which the job was started.
    type: str
    default: ""
  user:
    description:
      - Who runs the job on its launcher; empty means who logs in.
    type: str
    default: ""
  run_dir:
    description:
      - The run directory of the job on the launcher.
    type: path
    default: ""
  records:
    description:
      - The folder on the nodes in which the step records lie. It may be the run directory.
    type: path
    default: ""
  kubernetes:
    description:
      - Of a job on Kubernetes its C(name), C(namespace), C(kubeconfig), C(context), C(api) and C(names), as
        M(dml.vsphere.mpijob_info) takes them. The state of the job and the identity of its pods come from there. A pod
        that was recreated breaks the job. C(names) are the names of the workers in vCenter, by that of the node.
      - Before each move M(dml.vsphere.mpijob_preflight_info) is asked. A finding that stops refuses the move.
    type: dict
    default: {}
  nodes:
    description:
      - How this machine reaches each node, as M(dml.vsphere.training_watch) takes it.
    type: list
    elements: dict
    default: []
  dir:
    description:
      - The folder on this machine in which each test gets a folder of its own.
    type: path
    required: true
  rounds:
    description:
      - How often every worker moves.
    type: int
    default: 1
  duration:
    description:
      - Seconds for which rounds go on, however many there are. With 0 only the number of rounds counts.
    type: int
    default: 0
  canary:
    description:
      - Where no worker of the cluster has ever moved, a worker without a rank of the job moves first, and the test
        ends there if that fails. V(auto) takes any such worker; or the name of one; or empty for none.
    type: str
    default: auto
  return_home:
    description:
      - Whether every worker comes back to where it was.
    type: bool
    default: false
  one_per_host:
    description:
      - Whether no two workers may be on one host.
    type: bool
    default: true
  warmup_steps:
    description:
      - The first steps of the job, which are not measured.
    type: int
    default: 20
  steps:
    description:
      - Steps that every rank makes before the first move and after each.
    type: int
    default: 20
  warm_timeout:
    description:
      - Seconds until the job is warm.
    type: int
    default: 600
  move_timeout:
    description:
      - Seconds that one move may take.
    type: int
    default: 1800
  look_timeout:
    description:
      - Seconds within which every node must tell the connections of its ranks.
    type: int
    default: 30
  finish_timeout:
    description:
      - Seconds that the test waits for the end of the job after the last move, to see that all ranks ended with the
        same parameters. With 0 it does not wait.
    type: int
    default: 0
  ends_job:
    description:
      - Whether the job ends with the test, because it was started for it. It is asked to end with its epoch, which
        our benchmark understands, and stopped when it has not within O(finish_timeout).
    type: bool
    default: false
  stun_budget:
    description:
      - Seconds that the job bears without one worker. A move that would stun it longer is not made.
    type: float
    default: 100
  guest_checks:
    description:
      - Whether to look into the nodes first for timers that would end the job during a stun, licences, and
        checkpoints.
    type: bool
    default: true
  checkpoints:
    description:
      - The folder on the nodes in which the job keeps checkpoints. Empty where it keeps none.
    type: str
    default: ""
  checkpoint_minutes:
    description:
      - How many minutes old the newest checkpoint may be, where the job keeps any.
    type: int
    default: 60
  accept:
    description:
      - Rules that may be broken and are then shown as warnings, as M(dml.vsphere.vmotion) and the filter
        P(dml.vsphere.guest_findings#filter) name them.
    type: list
    elements: str
    default: []
  limits:
    description:
      - Limits of the verdict, as the page docs/continuity.md explains them.
    type: dict
    default: {}
  require:
    description:
      - What must have been observed beside the records for a verdict.
    type: list
    elements: str
    choices: [launcher, transport, vsphere]
    default: [launcher, transport, vsphere]
  go_on:
    description:
      - Whether to go on after a breach or a move that failed.
    type: bool
    default: false
  drs_override:
    description:
      - What DRS does with the workers during the test. Empty to leave that as it is.
    type: str
    default: manual
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.vmotion_test_info
  - module: dml.vsphere.continuity_verdict
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Would it be possible?
  dml.vsphere.vmotion_test:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
  check_mode: true

- name: Test cluster gpu
  dml.vsphere.vmotion_test:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
    launcher: worker01
    run_dir: /var/lib/dml/runs/one
    records: /var/lib/dml/runs/one
    nodes:
      - {name: worker01, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
      - {name: worker02, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.2]}
  delegate_to: worker01
"""

RETURN = r"""
folder:
  description: The folder of the test.
  returned: when it was carried out
  type: str
verdict:
  description: V(continuous), V(broken) or V(inconclusive).
  returned: when the job was judged
  type: str
moved:
  description: Whether V(all), V(some) or V(none) of the moves took place.
  returned: when the job was judged
  type: str
moves:
  description: The moves that are planned.
  returned: in check mode
  type: list
  elements: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.vmotion.folder.folder import Opening
from ..module_utils.vsphere import session

SETTINGS = {
    "cluster": {"type": "str", "required": True},
    "workers": {"type": "list", "elements": "str", "default": []},
    "launcher": {"type": "str", "default": ""},
    "user": {"type": "str", "default": ""},
    "run_dir": {"type": "path", "default": ""},
    "records": {"type": "path", "default": ""},
    "nodes": {"type": "list", "elements": "dict", "default": []},
    "kubernetes": {"type": "dict", "default": {}},
    "dir": {"type": "path", "required": True},
    "rounds": {"type": "int", "default": 1},
    "duration": {"type": "int", "default": 0},
    "canary": {"type": "str", "default": "auto"},
    "return_home": {"type": "bool", "default": False},
    "one_per_host": {"type": "bool", "default": True},
    "warmup_steps": {"type": "int", "default": 20},
    "steps": {"type": "int", "default": 20},
    "warm_timeout": {"type": "int", "default": 600},
    "move_timeout": {"type": "int", "default": 1800},
    "look_timeout": {"type": "int", "default": 30},
    "finish_timeout": {"type": "int", "default": 0},
    "ends_job": {"type": "bool", "default": False},
    "stun_budget": {"type": "float", "default": 100},
    "guest_checks": {"type": "bool", "default": True},
    "checkpoints": {"type": "str", "default": ""},
    "checkpoint_minutes": {"type": "int", "default": 60},
    "accept": {"type": "list", "elements": "str", "default": []},
    "limits": {"type": "dict", "default": {}},
    "require": {
        "type": "list",
        "elements": "str",
        "choices": ["launcher", "transport", "vsphere"],
        "default": ["launcher", "transport", "vsphere"],
    },
    "go_on": {"type": "bool", "default": False},
    "drs_override": {"type": "str", "default": "manual"},
}
ARGUMENTS = {"folder": {"type": "str", "default": ""}, **SETTINGS}


def body(module: AnsibleModule) -> dict[str, Any]:
    settings = {name: module.params[name] for name in SETTINGS if name != "dir"}
    subject = Opening(settings, module.params["folder"], module.params["dir"])
    taken_up = subject.is_taken_up
    result = runner.converge_one(module, subject)
    folder = str(subject.folder) if subject.folder else ""
    return {**result, "folder": folder, "opened": subject.is_open, "taken_up": taken_up, "settings": settings}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
