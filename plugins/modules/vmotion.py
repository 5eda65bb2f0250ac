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
  - Moves one running worker to another host of its cluster with vMotion, follows the server's task to its end, and
    returns the observed host, physical GPUs, power cycles and events of the move, not the requested ones.
  - Before the move, the module checks everything that would make the move fail or harm the job. If a finding stops the
    move, the module fails before the first write, also in check mode.
  - After a killed run, the module follows a move that is in progress; it never starts a second one.
  - A worker that is already on the host does not move.
options:
  cluster: {description: The cluster in which the worker runs., type: str, required: true}
  worker:
    description: Name of the worker. Only a virtual machine with the mark of this collection is moved.
    type: str
  target: {description: Name of the target host., type: str}
  moves:
    description:
      - Moves to make at the same time, instead of O(worker) and O(target). If a finding stops one of them, none is
        started. M(dml.vsphere.vmotion_plan) finds moves that may run at the same time.
    type: list
    elements: dict
    suboptions:
      worker: {description: Name of the worker., type: str, required: true}
      target: {description: Name of the target host., type: str, required: true}
  move_timeout:
    description: Seconds that the move may take. After that, it is cancelled, and the worker stays on its host.
    type: int
    default: 1800
  stun_budget:
    description:
      - Seconds that the job tolerates without this worker. A move with a longer expected stun is refused.
      - With O(moves), the workers wait for each other, and the sum of their expected stuns must be within it too.
      - The expected stun is the server's estimate from vSphere 8.0 U2 on. For earlier versions, it comes from the times
        that VMware published for the version of the target, the framebuffer of the virtual GPUs, and from vSphere 7 on
        the memory of the worker.
    type: float
  bandwidth:
    description: Megabits per second of the vMotion network, for the estimate of the stun. The default is 10000.
    type: int
  records:
    description:
      - The file of records on this machine, which a watch writes. If it is given, step and rate of the job
        are shown with the progress of the move.
    type: path
  accept:
    description:
      - Rules that may be broken, with the names that errors show in parentheses, such as V(alarm). Their findings
        become warnings.
    type: list
    elements: str
    default: []
  spare:
    description:
      - Hosts of another cluster of this vCenter, to and from which the worker may move too. It leaves its resource
        pool for the root of that cluster. The account needs the privilege C(Resource.AssignVMToPool) there.
    type: dict
    suboptions:
      cluster: {description: The other cluster., type: str, required: true}
      hosts: {description: Its hosts; without names all., type: list, elements: str, default: []}
extends_documentation_fragment:
  - dml.vsphere.lock
  - dml.vsphere.progress
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - The times of a move are those of the server's task, converted to the clock of the machine that runs the module.
    C(clock_error_s) is the largest possible error of the conversion.
seealso:
  - module: dml.vsphere.vmotion_plan
  - module: dml.vsphere.worker_vm
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Check whether worker-1 can move
  dml.vsphere.vmotion:
    cluster: gpu
    worker: worker-1
    target: esx05.example.com
    stun_budget: 60
  check_mode: true

- name: Move worker-1
  dml.vsphere.vmotion:
    cluster: gpu
    worker: worker-1
    target: esx05.example.com
  register: moved
"""

RETURN = r"""
state:
  description: C(host), the host on which the worker runs; in check mode, the host on which it would run.
  returned: success
  type: dict
  sample: {host: esx05.example.com}
unmet: {description: The findings that stop the move; in check mode., returned: success, type: list, elements: str}
begun:
  description:
    - Whether vCenter may have started the move for this call. If a call fails after that, M(dml.vsphere.vmotion_info)
      returns the result of the move.
  returned: when the worker was found
  type: bool
findings:
  description: The findings before the move, each with C(severity), C(rule), C(object) and C(text).
  returned: when it was to be moved
  type: list
  elements: dict
moved:
  description:
    - The result of each of O(moves), with C(worker), C(failed), C(msg), C(begun), C(findings) and C(move).
  returned: with O(moves)
  type: list
  elements: dict
move:
  description: The move as it was observed, even if it failed.
  returned: when it was moved
  type: dict
  contains:
    worker: {description: The worker., type: str}
    source: {description: The observed host before the move., type: str}
    target: {description: The requested host., type: str}
    ok: {description: Whether the task succeeded and the worker runs on the target., type: bool}
    attached: {description: Whether the move was already in progress., type: bool}
    started: {description: "The start of the task, in seconds since the epoch on the local clock.", type: float}
    completed: {description: The end of the task., type: float}
    seconds: {description: The duration on the server's clock., type: float}
    clock_offset_s: {description: The server's clock minus the local clock., type: float}
    clock_error_s: {description: The largest possible error of the offset., type: float}
    clock_set_s: {description: The time by which the server's clock was set during the move., type: float}
    said: {description: "The error from the server, if the move failed.", type: str}
    by: {description: The user who started the move., type: str}
    task: {description: "C(key), C(what) and C(state) of the server's task.", type: dict}
    chain: {description: The number that its events share., type: int}
    events: {description: The events of this move., type: list, elements: dict}
    vsphere:
      description:
        - C(hot_migration), C(encrypted), C(power_cycled), C(host) and C(gpus), the last two C(before) and C(after).
          C(encrypted) comes from the events of vCenter, and C(encryption) is the setting of the worker.
          C(stun_expected_s) is the estimated stun; no API reports the actual one.
      type: dict
"""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.core import findings, observer_clock
from ..module_utils.maintenance.lock import holder, keeper, own_lock
from ..module_utils.moves.move import move, move_facts
from ..module_utils.vsphere import session
from ..module_utils.watch.growing_file import GrowingFile
from ..module_utils.watch.live_pace import LivePace
from ..module_utils.workers.worker_cluster import WorkerCluster

LAST = 1 << 16  # bytes of records, which show the progress of the job
SILENT = 2.0  # seconds of silence that are worth a message
ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "worker": {"type": "str"},
    "target": {"type": "str"},
    "moves": {
        "type": "list",
        "elements": "dict",
        "options": {"worker": {"type": "str", "required": True}, "target": {"type": "str", "required": True}},
    },
    "move_timeout": {"type": "int", "default": 1800},
    "stun_budget": {"type": "float"},
    "bandwidth": {"type": "int"},
    "records": {"type": "path"},
    "accept": {"type": "list", "elements": "str", "default": []},
    "spare": {
        "type": "dict",
        "options": {
            "cluster": {"type": "str", "required": True},
            "hosts": {"type": "list", "elements": "str", "default": []},
        },
    },
    **own_lock.ARGUMENTS,
    **progress.ARGUMENTS,
}


def with_job_pace(shown: progress.Progress, growing: GrowingFile) -> Callable[[str, str], None]:
    """Return a function that shows an event together with the current pace of the job."""
    pace, one_at_a_time = LivePace(), threading.Lock()

    def report(about: str, what: str) -> None:
        with one_at_a_time:
            pace.feed(growing.new_records())
            silent = observer_clock.now() - pace.last_seen if pace.last_seen is not None else 0.0
            line = pace.line() + (f", silent for {silent:.0f} s" if silent > SILENT else "")
        shown.report(about, f"{what}; job: {line}")

    return report


def body(module: AnsibleModule) -> runner.Result:
    params, shown = module.params, progress.Progress(module.params["progress_file"])
    growing_records = GrowingFile(Path(params["records"] or ""), LAST)
    with holder.marked(), session.session(params) as opened, keeper.renewing(opened), growing_records as growing:
        subjects = subjects_of(opened, params, with_job_pace(shown, growing) if params["records"] else shown.report)
        with own_lock.OwnLock(
            opened, params["cluster"], force=params["force_unlock"], check=runner.only_plans(module)
        ) as lock:
            if params["moves"] is None:
                return {**runner.converge_one(module, lock.guarded(subjects[0])), **observed(subjects[0])}
            return at_once(module, subjects, lock)


def subjects_of(
    opened: session.Session, params: runner.Params, report: Callable[[str, str], None]
) -> list[move.WorkerMove]:
    """Return the moves; each reads the cluster for itself, because they run in parallel."""
    budget = move_facts.Budget(params["stun_budget"], params["bandwidth"])
    limits = (params["move_timeout"], tuple(params["accept"]), budget)
    desired = [params] if params["moves"] is None else params["moves"]
    subjects: list[move.WorkerMove] = []

    def refusal() -> str:
        return too_long({one.target: one.stun for one in subjects}, params["stun_budget"])

    requests = [move.MoveRequest(one["worker"], one["target"], *limits, report, refusal) for one in desired]
    where = (params["cluster"], params["spare"])
    subjects += [move.WorkerMove(WorkerCluster(opened, *where), request) for request in requests]
    return subjects


def too_long(stuns: Mapping[str, float | None], budget: float | None) -> str:
    """Return why workers may not move at once: they wait for each other, so their expected stuns add up."""
    total = sum(stun or 0.0 for stun in stuns.values())
    if budget is None or len(stuns) == 1 or total <= budget:
        return ""
    return f"the stuns of {', '.join(stuns)} add up to {total:.0f} s, over {budget:.0f} s, the limit of the job"


def observed(subject: move.WorkerMove) -> runner.Result:
    rows = {"findings": findings.as_dicts(subject.found)} if subject.found else {}
    return {**rows, "begun": subject.is_started, **({"move": subject.record} if subject.record else {})}


def at_once(module: AnsibleModule, subjects: list[move.WorkerMove], lock: own_lock.OwnLock) -> runner.Result:
    """Make several moves, and return the result of each; if one is refused, none is started."""
    guarded = [lock.guarded(subject) for subject in subjects]
    work = runner.Work(subjects=guarded, refresh=lambda _subjects: None, parallel=len(subjects))
    result = runner.converge(module, work)
    reports: list[Mapping[str, Any]] = result.pop("hosts")
    moved = [
        {
            "worker": subject.target,
            "failed": bool(result.get("failed")) and not (subject.record and subject.record["ok"]),
            "msg": report.get("msg") or result.get("msg", ""),
            **observed(subject),
        }
        for subject, report in zip(subjects, reports)
    ]
    return {**result, "moved": moved}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **ARGUMENTS},
        required_one_of=[("worker", "moves")],
        mutually_exclusive=[("worker", "moves")],
        required_together=[("worker", "target")],
        supports_check_mode=True,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
