#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: one move of one running worker."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion
short_description: Move a running worker to another host, and return the observed move
version_added: 1.0.0
description:
  - Moves one worker that runs to another host of its cluster by vMotion, follows the server's task to its end, and
    returns what was observed before and after, never what was asked for. Host, physical GPUs, power cycles, and the
    events of this very move.
  - Before the move, the module checks everything that would make the move fail or harm the job. Findings that stop the
    move are refused before the first write, in check mode too.
  - A run that was killed is continued. A move that runs already is followed; a second move is never started.
  - A worker that is already on the host is left alone.
options:
  cluster:
    description: The cluster in which the worker runs.
    type: str
    required: true
  worker:
    description: Name of the worker. Only a virtual machine with the mark of this collection is moved.
    type: str
    required: true
  target:
    description: Name of the target host.
    type: str
    required: true
  move_timeout:
    description: Seconds that the move may take. After that it is cancelled, and the worker stays on its host.
    type: int
    default: 1800
  stun_budget:
    description:
      - Seconds that the job tolerates without this worker. A move with a longer expected stun is refused.
      - What is expected is the server's own estimate from vSphere 8.0 U2 on, and else VMware's published times for the
        version of the target, the framebuffer of the virtual GPUs, and from vSphere 7 on the memory of the worker.
    type: float
  bandwidth:
    description: Megabits a second of the vMotion network, by which the stun is estimated. By default 10000.
    type: int
  records:
    description:
      - The file of records of M(dml.vsphere.training_watch) on this machine. Where it is given, step and rate of the
        job are shown beside the progress of the move.
    type: path
  accept:
    description:
      - Rules that may be broken, by their names as the refusals tell them in parentheses. Such as V(alarm). They become
        warnings.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - dml.vsphere.progress
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - The times of a move are those of the server's task, put on the clock of the machine that runs the module.
    C(clock_error_s) says by how much that can be wrong.
seealso:
  - module: dml.vsphere.vmotion_plan
  - module: dml.vsphere.worker_vm
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Would it move?
  dml.vsphere.vmotion:
    cluster: gpu
    worker: worker-1
    target: esx05.example.com
    stun_budget: 60
  check_mode: true

- name: Move it
  dml.vsphere.vmotion:
    cluster: gpu
    worker: worker-1
    target: esx05.example.com
  register: moved
"""

RETURN = r"""
state:
  description: C(host), on which the worker runs; in check mode, on which it would.
  returned: success
  type: dict
  sample: {host: esx05.example.com}
unmet:
  description: What stops the move; in check mode.
  returned: success
  type: list
  elements: str
begun:
  description:
    - Whether vCenter may have begun the move for this call. Where a call fails after that, what became of the move is
      told by M(dml.vsphere.vmotion_info).
  returned: when the worker was found
  type: bool
findings:
  description: All that was found before the move, each with C(severity), C(rule), C(object) and C(text).
  returned: when it was to be moved
  type: list
  elements: dict
move:
  description: The move as it was observed, also when it failed.
  returned: when it was moved
  type: dict
  contains:
    worker: {description: The worker., type: str}
    source: {description: The host on which it was seen before., type: str}
    target: {description: The host that was asked for., type: str}
    ok: {description: Whether the task succeeded and the worker is seen there., type: bool}
    attached: {description: Whether the move was under way already., type: bool}
    started: {description: "When the server's task began, in seconds since the epoch on our clock.", type: float}
    completed: {description: When it ended., type: float}
    seconds: {description: How long it took by the server's clock., type: float}
    clock_offset_s: {description: The server's clock less ours., type: float}
    clock_error_s: {description: By how much that can be wrong., type: float}
    said: {description: "The server's words, where it failed.", type: str}
    by: {description: Who began it., type: str}
    task: {description: "C(key), C(what) and C(state) of the server's task.", type: dict}
    chain: {description: The number that its events share., type: int}
    events: {description: The events of this move., type: list, elements: dict}
    vsphere:
      description:
        - C(hot_migration), C(encrypted), C(power_cycled), C(host) and C(gpus), the last two C(before) and C(after).
          C(encrypted) is what vCenter's events tell, and C(encryption) the worker's own setting. C(stun_expected_s) is
          the stun that the findings reckon with; how long it was, no API tells.
      type: dict
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.core import findings
from ..module_utils.maintenance.lock import holder, keeper
from ..module_utils.training.live_pace import LivePace
from ..module_utils.vmotion.move import move, move_facts
from ..module_utils.vmotion.watch.growing_file import GrowingFile
from ..module_utils.vsphere import session
from ..module_utils.workers.worker_cluster import WorkerCluster

LAST = 1 << 16  # bytes of records, which show the progress of the job
SILENT = 2.0  # seconds of silence that are worth a message
ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "worker": {"type": "str", "required": True},
    "target": {"type": "str", "required": True},
    "move_timeout": {"type": "int", "default": 1800},
    "stun_budget": {"type": "float"},
    "bandwidth": {"type": "int"},
    "records": {"type": "path"},
    "accept": {"type": "list", "elements": "str", "default": []},
    **progress.ARGUMENTS,
}


def with_job_pace(shown: progress.Progress, growing: GrowingFile) -> Callable[[str, str], None]:
    """Return a function that shows an event together with the current pace of the job."""
    pace = LivePace()

    def tell(about: str, what: str) -> None:
        pace.feed(growing.new_records())
        silent = time.time() - pace.last_seen if pace.last_seen is not None else 0.0
        shown.tell(about, f"{what}; job: {pace.line()}" + (f", silent for {silent:.0f} s" if silent > SILENT else ""))

    return tell


def body(module: AnsibleModule) -> dict[str, Any]:
    params, shown = module.params, progress.Progress(module.params["progress_file"])
    budget = move_facts.Budget(params["stun_budget"], params["bandwidth"])
    options = (params["worker"], params["target"], params["move_timeout"], tuple(params["accept"]), budget)
    growing_records = GrowingFile(Path(params["records"] or ""), LAST)
    with holder.at_work(), session.session(params) as opened, keeper.kept(opened), growing_records as growing:
        tell = with_job_pace(shown, growing) if params["records"] else shown.tell
        subject = move.Move(WorkerCluster(opened, params["cluster"]), move.MoveRequest(*options, tell))
        result = runner.converge_one(module, subject)
    rows = {"findings": findings.as_dicts(subject.found)} if subject.found else {}
    return {**result, **rows, "begun": subject.begun, **({"move": subject.record} if subject.record else {})}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
