#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: show how a watched training job goes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_follow
short_description: Show how a watched training job goes, line by line
version_added: 1.0.0
description:
  - Follows the file that M(dml.vsphere.training_watch) writes and shows step, images per second, loss, time to go and
    the slowest rank every few seconds.
  - It ends when every rank has made O(steps) steps, or when no record came for O(quiet) seconds. Then the job may have
    ended, or not have begun to train; M(dml.vsphere.training_job_info) tells which.
options:
  records:
    description: The file of records on this machine.
    type: path
    required: true
  steps:
    description: The last step of the job, if that is known.
    type: int
    default: 0
  warmup:
    description: The first steps, which are left out of RV(curve.images_per_sec).
    type: int
    default: 0
  quiet:
    description: Seconds without a record after which it ends.
    type: float
    default: 15
  every:
    description: Seconds between lines.
    type: float
    default: 5
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
- name: Follow the job
  dml.vsphere.training_follow:
    records: /tmp/one/records.jsonl
    steps: 1000
  delegate_to: localhost
"""

RETURN = r"""
ended:
  description: V(finished) if every rank made all steps, else V(quiet).
  returned: success
  type: str
last_seen:
  description: When the last record arrived, in seconds since 1970; null if none did.
  returned: success
  type: float
pace:
  description: C(step) of all ranks, number of C(ranks), C(images_per_sec), C(loss), C(slowest) rank, its C(host).
  returned: success
  type: dict
curve:
  description: How it went, in steps that are put together where there are many.
  returned: success
  type: dict
  contains:
    images_per_sec: {description: Images per second without the first steps; null where none tells., type: float}
    points:
      description:
        - By C(step) C(seconds) since the first record, C(images_per_sec) of all and the mean C(loss).
        - First steps have no rate.
      type: list
      elements: dict
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.logic.training.curve import Curve
from ..module_utils.logic.training.live_pace import LivePace
from ..module_utils.watch.growing import Growing

ARGUMENTS = {
    "records": {"type": "path", "required": True},
    "steps": {"type": "int", "default": 0},
    "warmup": {"type": "int", "default": 0},
    "quiet": {"type": "float", "default": 15.0},
    "every": {"type": "float", "default": 5.0},
    **progress.ARGUMENTS,
}


def follow(growing: Growing, pace: LivePace, quiet: float, every: float, told: progress.Progress) -> str:
    """Until there is nothing to follow, telling how it goes."""
    heard = said = time.monotonic()
    while True:
        now = time.monotonic()
        if pace.feed(growing.more()):
            heard = now
        if pace.is_done or now - said >= every:
            said = now
            told.tell("training", pace.line())
        if pace.is_done:
            return "finished"
        if now - heard > quiet:
            return "quiet"
        growing.wait()


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    curve, told = Curve(params["warmup"]), progress.Progress(params["progress_file"])
    pace = LivePace(params["steps"], curve)
    with Growing(Path(params["records"])) as growing:
        ended = follow(growing, pace, params["quiet"], params["every"], told)
    went = {"images_per_sec": curve.rate(), "points": curve.points()}
    return {"changed": False, "ended": ended, "last_seen": pace.last_seen, "pace": pace.summary(), "curve": went}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
