#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: show the pace of a watched training job."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_follow
short_description: Show the pace of a watched training job, line by line and as a page
version_added: 1.0.0
description:
  - Follows the file that M(dml.vsphere.training_watch) writes, and shows step, images per second, loss, remaining time
    and the slowest rank every few seconds.
  - With O(folder), it writes C(live.html) and C(metrics.prom) every O(every) seconds, each complete or not at all. The
    page loads itself again until the job ends; the metrics have the text format of Prometheus. If the watch has the
    option C(view), both contain the use of the GPUs, and the page contains the last lines of the output. After the end
    of the job, the lines come from C(output.log) in O(folder).
  - The module ends when every rank has made O(steps) steps and no other step follows them within two seconds and three
    usual steps, or when no record arrived for O(quiet) seconds. In the second case the job may have ended, or may not
    train yet; M(dml.vsphere.training_job_info) returns its state.
options:
  records:
    description: The file of records on this machine.
    type: path
    required: true
  steps:
    description:
      - The last step of the job; V(0) means that the last step is unknown.
      - It may be an estimate - a job that makes more steps is followed until its records end.
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
  folder:
    description: The folder of the run on this machine for C(live.html) and C(metrics.prom); without it, for none.
    type: path
  metrics:
    description:
      - Another folder for the metrics, such as that of the textfile collector of node_exporter. The file there is
        C(dml_NAME.prom), with the name of O(run), and readable by all users.
    type: path
  vmotion_tests:
    description:
      - The folder of vMotion tests on this machine. The page shows the moves of the job in O(run_dir) as bands over the
        steps, during a test and after it.
    type: path
  run_dir:
    description: The run directory of the job on its launcher, as the vMotion tests name it.
    type: str
    default: ""
  state:
    description: The state of the job, which the page shows; its last page does not load itself again.
    type: str
    default: running
  why:
    description: The cause of the end of the job.
    type: str
    default: ""
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
- name: Show the pace of the training job and write its page
  dml.vsphere.training_follow:
    records: reports/runs/one/watch-1/records.jsonl
    folder: reports/runs/one
    run: one
  delegate_to: localhost

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
      C(first_silent) a sentence about the rank whose records ended clearly before those of all others, and about a
      move of O(vmotion_tests) at that time.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.pages import live_files
from ..module_utils.training.curve import Curve
from ..module_utils.training.live_pace import LivePace
from ..module_utils.training.live_state import JobMove, LiveState, silence_text
from ..module_utils.vmotion.watch import watcher
from ..module_utils.vmotion.watch.growing_file import GrowingFile
from ..module_utils.vmotion.watch.job_moves import JobMoves

ARGUMENTS = {
    "records": {"type": "path", "required": True},
    "steps": {"type": "int", "default": 0},
    "warmup": {"type": "int", "default": 0},
    "quiet": {"type": "float", "default": 15.0},
    "every": {"type": "float", "default": 5.0},
    "folder": {"type": "path"},
    "metrics": {"type": "path"},
    "vmotion_tests": {"type": "path"},
    "run_dir": {"type": "str", "default": ""},
    "state": {"type": "str", "default": "running"},
    "why": {"type": "str", "default": ""},
    "run": {"type": "str", "default": ""},
    "stop": {"type": "str", "default": ""},
    **progress.ARGUMENTS,
}


def follow(growing: GrowingFile, pace: LivePace, quiet: float, every: float, show: Callable[[], None]) -> str:
    """Follow the records until all steps are made or no record arrives, show the pace, and return how it ended.

    The number of steps may be an estimate: if the job makes more, they are followed too.
    """
    received = shown = time.monotonic()
    while True:
        now = time.monotonic()
        if pace.feed(growing.new_records()):
            received = now
        is_finished = pace.is_done and time.time() - (pace.last_seen or 0.0) > min(quiet, pace.usual_silence)
        if is_finished or now - shown >= every:
            shown = now
            show()
        if is_finished:
            return "finished"
        if now - received > quiet:
            return "quiet"
        growing.wait()


class Shown:
    """The pace as lines of the playbook and as files."""

    def __init__(self, module: AnsibleModule, pace: LivePace, curve: Curve) -> None:
        self._module, self._pace, self._curve = module, pace, curve
        self._told = progress.Progress(module.params["progress_file"])
        tests = module.params["vmotion_tests"]
        self._moves = JobMoves(Path(tests), module.params["run_dir"]) if tests else None

    def show(self) -> None:
        """Show the pace."""
        troubles = watcher.troubles(Path(self._module.params["records"]))
        self._told.tell("training", self._pace.line())
        for node, why in troubles.items():
            self._told.tell("training", f"{node} cannot be read: {why}")
        self.write(troubles)

    def moves(self, now: float) -> list[JobMove]:
        """Return the moves of the job's workers so far."""
        return self._moves.since(self._curve.began, now) if self._moves and self._curve.began else []

    def write(self, troubles: dict[str, str]) -> None:
        """Write the files; the job continues without them, for example on a full disk."""
        params, now = self._module.params, time.time()
        if not params["folder"]:
            return
        state = LiveState(
            *(params["run"], now, params["state"], params["why"], params["steps"]),
            *(self._pace.summary(), self._pace.ranks(), self._curve.points(), troubles, self._curve.began),
        )
        moves = self.moves(now)
        state = live_files.with_views(state, Path(params["records"]), Path(params["folder"]), moves)
        for files in live_files.live_files(state, Path(params["folder"]), params["metrics"]):
            done = runner.converge_one(self._module, files)
            if done.get("failed"):
                self._told.tell("page", str(done["msg"]))


def body(module: AnsibleModule) -> dict[str, Any]:
    params, records = module.params, Path(module.params["records"])
    curve = Curve(params["warmup"])
    pace = LivePace(params["steps"], curve)
    shown = Shown(module, pace, curve)
    with GrowingFile(records) as growing:
        ended = follow(growing, pace, params["quiet"], params["every"], shown.show)
    shown.write(watcher.troubles(records))
    ended = "unwatched" if ended == "quiet" and watcher.is_left(records) else ended
    drawn = {"images_per_sec": curve.rate(), "points": curve.points()}
    summary = {**pace.summary(), "first_silent": silence_text(pace.first_silence(), shown.moves(time.time()))}
    return {"changed": False, "ended": ended, "last_seen": pace.last_seen, "pace": summary, "curve": drawn}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
