#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: show the pace of a watched training job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_follow
short_description: Show the pace of a watched training job, line by line
version_added: 1.0.0
description:
  - Follows the file that M(dml.vsphere.training_watch) writes, and shows step, images per second, loss, remaining time
    and the slowest rank every few seconds.
  - The module ends when every rank has made O(steps) steps, or when no record arrived for O(quiet) seconds. In the
    second case the job may have ended, or may not train yet; M(dml.vsphere.training_job_info) returns its state.
options:
  records:
    description: The file of records on this machine.
    type: path
    required: true
  steps:
    description: The last step of the job; V(0) means that the last step is unknown.
    type: int
    default: 0
  warmup:
    description: The number of first steps that do not count in RV(curve.images_per_sec).
    type: int
    default: 0
  quiet:
    description: Seconds without a record after which the module ends.
    type: float
    default: 15
  every:
    description: Seconds between lines.
    type: float
    default: 5
  run:
    description: The name of the run, which is shown if the user interrupts the playbook, with how to follow it again.
    type: str
    default: ""
  stop:
    description: The command that stops the run, which is shown with O(run).
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.progress
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.training_watch
  - module: dml.vsphere.training_job_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Show the pace of the training job
  dml.vsphere.training_follow:
    records: /tmp/one/records.jsonl
    steps: 1000
  delegate_to: localhost
"""

RETURN = r"""
ended:
  description:
    - V(finished) if every rank made all steps, V(unwatched) if no watch collects records any longer, so that the state
      of the job is unknown, else V(quiet).
  returned: success
  type: str
last_seen:
  description: The time at which the last record arrived, in seconds since 1970; V(null) if no record arrived.
  returned: success
  type: float
pace:
  description:
    - C(step) of all ranks, number of C(ranks), C(images_per_sec), C(loss), C(slowest) rank, its C(host), and in
      C(first_silent) a sentence about the rank whose records ended clearly before those of all others.
  returned: success
  type: dict
curve:
  description: Rate and loss over the steps; a point may combine several steps.
  returned: success
  type: dict
  contains:
    images_per_sec: {description: The rate without the warm-up steps; V(null) if no record has a rate., type: float}
    points:
      description:
        - The points, each with the C(step), the C(seconds) since the first record, the C(images_per_sec) of all ranks
          and the mean C(loss). Warm-up steps have no rate.
      type: list
      elements: dict
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.training.curve import Curve
from ..module_utils.training.live_pace import LivePace
from ..module_utils.vmotion.watch import watcher
from ..module_utils.vmotion.watch.growing_file import GrowingFile

ARGUMENTS = {
    "records": {"type": "path", "required": True},
    "steps": {"type": "int", "default": 0},
    "warmup": {"type": "int", "default": 0},
    "quiet": {"type": "float", "default": 15.0},
    "every": {"type": "float", "default": 5.0},
    "run": {"type": "str", "default": ""},
    "stop": {"type": "str", "default": ""},
    **progress.ARGUMENTS,
}


def follow(
    growing: GrowingFile, pace: LivePace, quiet: float, every: float, told: progress.Progress, records: Path
) -> str:
    """Follow the records until all steps are made or no record arrives, report the pace, and return how it ended."""
    received = reported = time.monotonic()
    while True:
        now = time.monotonic()
        if pace.feed(growing.new_records()):
            received = now
        if pace.is_done or now - reported >= every:
            reported = now
            told.tell("training", pace.line())
            for node, why in watcher.troubles(records).items():
                told.tell("training", f"{node} cannot be read: {why}")
        if pace.is_done:
            return "finished"
        if now - received > quiet:
            return "unwatched" if watcher.is_left(records) else "quiet"
        growing.wait()


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    curve, told = Curve(params["warmup"]), progress.Progress(params["progress_file"])
    pace = LivePace(params["steps"], curve)
    with GrowingFile(Path(params["records"])) as growing:
        ended = follow(growing, pace, params["quiet"], params["every"], told, Path(params["records"]))
    drawn = {"images_per_sec": curve.rate(), "points": curve.points()}
    return {"changed": False, "ended": ended, "last_seen": pace.last_seen, "pace": pace.summary(), "curve": drawn}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
