#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the verdict on a job whose workers were moved."""

from __future__ import annotations

DOCUMENTATION = r"""
module: continuity_verdict
short_description: Say whether a training job ran on, unbroken, while its workers were moved
version_added: 1.0.0
description:
  - Reads the step records that M(dml.vsphere.training_watch) collected and judges them together with the moves.
    The verdict is V(continuous), V(broken) with every breach, or V(inconclusive) with what evidence is missing.
  - It judges and writes files; whether a test passes is decided by who asks.
  - The folder of a vMotion test has all that its verdict rests on. With O(test) such a test is judged again, by other
    limits too, without vCenter; its verdict of then stays as it is.
options:
  records:
    description: The file of records. Required without O(test).
    type: path
  test:
    description:
      - The folder of a test of the role P(dml.vsphere.vmotion_test#role), or one that has exactly one such folder in
        it, such as that which the demo leaves. Records, moves, facts and what must have been observed are then those of
        the test, and O(limits) go before the limits of the test.
      - Without O(folder) a new verdict is written beside those that are there, C(verdict-2.json), C(junit-2.xml),
        C(timeline-2.json) and C(timeline-2.html), and so on. Nothing is overwritten.
    type: path
  moves:
    description: What M(dml.vsphere.vmotion) returned as C(move) for each of them, each with C(ranks) added.
    type: list
    elements: dict
    default: []
  ended:
    description: Whether the job still runs, has finished, or has died.
    type: str
    choices: [running, finished, died]
    default: running
  limits:
    description:
      - C(max_gap_s), C(phases), C(warmup_steps), C(resume_deadline_s) and C(min_throughput_ratio), as the page
        docs/continuity.md of the collection explains them.
    type: dict
    default: {}
  facts:
    description:
      - What was observed beside the records, C(launcher), C(transport), C(vsphere), C(power) and C(observed_until).
    type: dict
    default: {}
  require:
    description: Which of the facts must have been observed.
    type: list
    elements: str
    choices: [launcher, transport, vsphere]
    default: [launcher, transport, vsphere]
  folder:
    description: A folder on this machine that exists, for C(verdict.json) and C(junit.xml).
    type: path
  at:
    description:
      - On which host each worker was before the first move. With it, C(timeline.json) and the page C(timeline.html) are
        written to O(folder) too. They show throughput over time, moves, silences and the host of each worker.
    type: dict
  name:
    description: Name of the test in C(junit.xml) and on the page.
    type: str
    default: vmotion_test
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.vmotion
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Judge
  dml.vsphere.continuity_verdict:
    records: /tmp/one/records.jsonl
    moves: "{{ moves }}"
    folder: /tmp/one
  register: judged
  failed_when: judged.verdict != 'continuous' or judged.moved != 'all'

- name: Would the test have passed with half of the silence?
  dml.vsphere.continuity_verdict:
    test: /var/lib/dml/vmotion_test/gpu-1a2b3c
    limits: {max_gap_s: 60}
  register: judged
"""

RETURN = r"""
files:
  description: The files of the verdict that were written beside the earlier ones.
  returned: with O(test), without O(folder)
  type: list
  elements: str
lines:
  description: The verdict to read, with its reasons and a line for each move.
  returned: success
  type: list
  elements: str
verdict:
  description: V(continuous), V(broken) or V(inconclusive).
  returned: success
  type: str
moved:
  description: Whether V(all), V(some) or V(none) of the moves took place.
  returned: success
  type: str
breaches:
  description: What broke the job, each with C(kind), C(rank), C(step), C(at) and C(detail).
  returned: success
  type: list
  elements: dict
unproven:
  description: What was not proven.
  returned: success
  type: list
  elements: str
notes:
  description: What is good to know, such as moves that others began.
  returned: success
  type: list
  elements: str
longest_gap_s:
  description: The longest silence of the training, in seconds.
  returned: success
  type: float
moves:
  description: By move its C(gap_s), C(throughput) before, during and after, and C(steps).
  returned: success
  type: list
  elements: dict
"""

from collections.abc import Callable, Iterable
from itertools import count, islice
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.continuity import verdict
from ..module_utils.errors import Refused
from ..module_utils.pages import verdict_files
from ..module_utils.vmotion.checks import move_lines
from ..module_utils.vmotion.folder import folder as trial_folder
from ..module_utils.vmotion.folder.journal import NAME, read
from ..module_utils.vmotion.folder.verdicts import NewVerdict
from ..module_utils.vmotion.test import judging
from ..module_utils.vmotion.test.next_step import state_of
from ..module_utils.vmotion.watch.growing_file import GrowingFile

FACTS = ("launcher", "transport", "vsphere")
ARGUMENTS = {
    "records": {"type": "path"},
    "test": {"type": "path"},
    "moves": {"type": "list", "elements": "dict", "default": []},
    "ended": {"type": "str", "choices": list(verdict.ENDINGS), "default": "running"},
    "limits": {"type": "dict", "default": {}},
    "facts": {"type": "dict", "default": {}},
    "require": {"type": "list", "elements": "str", "choices": list(FACTS), "default": list(FACTS)},
    "folder": {"type": "path"},
    "at": {"type": "dict"},
    "name": {"type": "str", "default": "vmotion_test"},
}
GIVEN = ("moves", "limits", "ended", "facts", "require")


def of_test(params: dict[str, Any]) -> dict[str, Any]:
    """The options as the journal of a test gives them."""
    test = trial_folder.one_test(Path(params["test"]))
    state = state_of(read(test / NAME))
    if not state.warm:
        said = "it ended before the job was warm"
        raise Refused(str(test), "judge the test in it", said, "name the folder of another test")
    at = state.at if state.is_over or not params["folder"] else None
    own = {"test": test, "records": test / "records.jsonl", "at": at, "name": f"vmotion_test {state.cluster}"}
    return {**params, **judging.verdict_input(state, params["limits"]), **own}


def judge(params: dict[str, Any], records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The verdict over the records."""
    case = {key: params[key] for key in GIVEN}
    try:
        return verdict.verdict(records, case.pop("moves"), case.pop("limits"), **case)
    except ValueError as error:
        raise Refused(str(params["records"]), "judge its records", str(error), "correct what is named there") from error


def write(module: AnsibleModule, params: dict[str, Any], parts: list[Callable[[], dict[str, str]]]) -> dict[str, Any]:
    """Write the files of the verdict, each part before the next is made; give those of an earlier test new names."""
    if params["folder"]:
        for part in parts:
            for name, text in part().items():
                (Path(params["folder"]) / name).write_text(text, encoding="utf-8", errors="replace")
    elif params["test"]:
        names = verdict_files.VERDICT + (verdict_files.TIMELINE if len(parts) > 1 else ())
        subject = NewVerdict(params["test"], names, parts)
        return {**runner.converge_one(module, subject), "files": [str(path) for path in subject.paths]}
    return {"changed": False}


def parts_of(params: dict[str, Any], counted: int, result: dict[str, Any]) -> list[Callable[[], dict[str, str]]]:
    """Return the verdict, then its timeline: no page can keep the verdict from being written."""
    name, moves, at = params["name"], params["moves"], params["at"]

    def timeline() -> dict[str, str]:
        # The file is read again, up to the same record: it may hold more records than memory.
        with GrowingFile(Path(params["records"])) as again:
            return verdict_files.timeline_texts(name, islice(again.new_records(), counted), moves, result, at)

    return [lambda: verdict_files.verdict_texts(name, moves, result), *([] if at is None else [timeline])]


def body(module: AnsibleModule) -> dict[str, Any]:
    params = of_test(module.params) if module.params["test"] else module.params
    with GrowingFile(Path(params["records"])) as growing:
        counter = count()
        result = judge(params, (record for record, _number in zip(growing.new_records(), counter)))
    if growing.noise:
        result["unproven"].append(f"records: {growing.noise} lines are no JSON object and were left out")
    written = write(module, params, parts_of(params, next(counter), result))
    return {**written, **result, "lines": move_lines.verdict(result, params["moves"])}


def main() -> None:
    one = [("records", "test")]
    module = AnsibleModule(
        argument_spec=ARGUMENTS, required_one_of=one, mutually_exclusive=one, supports_check_mode=True
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
