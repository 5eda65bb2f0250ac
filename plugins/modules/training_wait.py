#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: wait until every rank of a job has advanced."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_wait
short_description: Wait until every rank of a watched training job has made a number of steps
version_added: 1.0.0
description:
  - Follows the file that M(dml.vsphere.training_watch) writes, and ends when every rank of the job has made O(steps)
    steps since O(since). The module fails after O(timeout) seconds, and names the ranks that are behind.
options:
  records:
    description: The file of records on this machine.
    type: path
    required: true
  steps:
    description: The number of steps that each rank must make.
    type: int
    default: 20
  since:
    description: A time in seconds since 1970; only steps that arrived later count. V(0) counts all steps.
    type: float
    default: 0
  timeout:
    description: Seconds to wait.
    type: float
    default: 600
  first:
    description:
      - Seconds after which the module fails if no rank has reported a step, although all nodes can be read. V(0) waits
        for O(timeout).
    type: float
    default: 0
  ended_by:
    description: A file on this machine whose appearance ends the module early, with C(asked).
    type: path
extends_documentation_fragment:
  - dml.vsphere.progress
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_watch
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Wait until every rank of the training job has made 50 steps
  dml.vsphere.training_wait:
    records: /tmp/one/records.jsonl
    steps: 50
  delegate_to: localhost
"""

RETURN = r"""
ranks:
  description: The number of ranks of the job.
  returned: success
  type: int
asked:
  description: Whether the file O(ended_by) appeared.
  returned: success
  type: bool
fewest:
  description: The number of steps, since O(since), of the rank with the fewest steps.
  returned: success
  type: int
step:
  description: The last step of the job.
  returned: success
  type: int
hosts:
  description: The ranks of each node, by the name of the node without its domain.
  returned: success
  type: dict
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.core.names import short_name
from ..module_utils.errors import Failed, Refused, TimedOut
from ..module_utils.training.live_pace import StepsSince
from ..module_utils.vmotion.watch import watcher
from ..module_utils.vmotion.watch.growing_file import GrowingFile

TELL_SECONDS = 5.0
UNWATCHED_SECONDS = 15.0
WITHOUT_STEPS = "all its nodes were read, and no rank has reported a step"
RECORD_STEPS = "record the steps of the script with dml_records, as the page of the role training describes"
UNWATCHED = "no watch collects the records of its nodes any longer"
ARGUMENTS = {
    "records": {"type": "path", "required": True},
    "steps": {"type": "int", "default": 20},
    "since": {"type": "float", "default": 0.0},
    "timeout": {"type": "float", "default": 600.0},
    "first": {"type": "float", "default": 0.0},
    "ended_by": {"type": "path"},
    **progress.ARGUMENTS,
}


class Limits(NamedTuple):
    """The steps that each rank must make, and the seconds for them and for the first one."""

    steps: int
    timeout: float
    first: float = 0.0
    ended_by: Path | None = None

    @property
    def is_asked(self) -> bool:
        """Return whether the file that ends the wait exists."""
        return self.ended_by is not None and self.ended_by.exists()


def wait(growing: GrowingFile, counted: StepsSince, limits: Limits, told: progress.Progress, records: Path) -> None:
    """Wait until every rank has advanced, and report the progress."""
    steps, timeout, first, _ended_by = limits
    started = reported = watched = time.monotonic()
    while True:
        counted.feed(growing.new_records())
        if (counted.size and counted.fewest() >= steps) or limits.is_asked:
            return
        now = time.monotonic()
        if now - started > timeout:
            raise _late(counted, steps, timeout, records)
        if first and now - started > first and not counted.size and not watcher.troubles(records):
            raise Refused("the job", f"make {steps} steps on every rank", WITHOUT_STEPS, RECORD_STEPS)
        watched = watched if watcher.is_left(records) else now
        if now - watched > UNWATCHED_SECONDS:
            raise Failed(
                "the job", f"make {steps} steps on every rank", UNWATCHED, "start the watch of its nodes again"
            )
        if now - reported >= TELL_SECONDS:
            reported = now
            told.tell("job", f"step {counted.step}, {counted.fewest()} of {steps} steps on every rank")
            for node, why in watcher.troubles(records).items():
                told.tell("job", f"{node} cannot be read: {why}")
        growing.wait()


def _late(counted: StepsSince, steps: int, timeout: float, records: Path) -> TimedOut:
    late = ", ".join(map(str, counted.behind(steps))) or "no step of any rank arrived"
    unread = [f"{node} cannot be read: {why}" for node, why in watcher.troubles(records).items()]
    cause = "; ".join([f"within {timeout:.0f} s these ranks did not: {late}", *unread])
    return TimedOut("the job", f"make {steps} steps on every rank", cause, "check the log of the job on the launcher")


def limits_of(params: dict[str, Any]) -> Limits:
    """Return the limits of the wait."""
    ended_by = Path(params["ended_by"]) if params["ended_by"] else None
    return Limits(params["steps"], params["timeout"], params["first"], ended_by)


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    counted, told = StepsSince(params["since"]), progress.Progress(params["progress_file"])
    with GrowingFile(Path(params["records"])) as growing:
        limits = limits_of(params)
        wait(growing, counted, limits, told, Path(params["records"]))
    nodes = {short_name(host) for host in counted.hosts.values()}
    return {
        "changed": False,
        "asked": limits.is_asked,
        "ranks": counted.size,
        "fewest": counted.fewest(),
        "step": counted.step,
        "hosts": {node: counted.ranks_on(node) for node in sorted(nodes)},
    }


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
