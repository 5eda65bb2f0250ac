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
options:
  records:
    description: The file of records.
    type: path
    required: true
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
    description: A folder on this machine for C(verdict.json) and C(junit.xml). It must exist.
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
  - dml.vsphere.attributes.info
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
"""

RETURN = r"""
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

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.logic.continuity import verdict
from ..module_utils.logic.training import timeline
from ..module_utils.pages import junit
from ..module_utils.pages.timeline import page as timeline_page
from ..module_utils.watch.growing import Growing

FACTS = ("launcher", "transport", "vsphere")
ARGUMENTS = {
    "records": {"type": "path", "required": True},
    "moves": {"type": "list", "elements": "dict", "default": []},
    "ended": {"type": "str", "choices": list(verdict.ENDINGS), "default": "running"},
    "limits": {"type": "dict", "default": {}},
    "facts": {"type": "dict", "default": {}},
    "require": {"type": "list", "elements": "str", "choices": list(FACTS), "default": list(FACTS)},
    "folder": {"type": "path"},
    "at": {"type": "dict"},
    "name": {"type": "str", "default": "vmotion_test"},
}


def judge(params: dict[str, Any], records: list[dict[str, Any]]) -> dict[str, Any]:
    """The verdict over the records."""
    given = {key: params[key] for key in ("ended", "facts", "require")}
    try:
        return verdict.verdict(records, params["moves"], params["limits"], **given)
    except ValueError as error:
        raise Refused(params["records"], "judge its records", str(error), "correct what is named there") from error


def write(params: dict[str, Any], records: list[dict[str, Any]], result: dict[str, Any]) -> None:
    """The files of evidence."""
    folder, name = Path(params["folder"]), params["name"]
    (folder / "verdict.json").write_text(json.dumps(result, indent=2) + "\n")
    (folder / "junit.xml").write_text(junit.report(name, result, params["moves"]))
    if params["at"] is not None:
        told = {"name": name, **timeline.timeline(records, params["moves"], result, params["at"])}
        (folder / "timeline.json").write_text(json.dumps(told, indent=1) + "\n")
        (folder / "timeline.html").write_text(timeline_page(told, name))


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    with Growing(Path(params["records"])) as growing:
        records = list(growing.more())
    result = judge(params, records)
    if params["folder"]:
        write(params, records, result)
    return {"changed": False, **result}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
