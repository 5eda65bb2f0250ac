#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the report on training runs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_report
short_description: Write the report on training runs
version_added: 1.0.0
description:
  - Reads the results of training runs, which the role P(dml.vsphere.training#role) stores, and writes a report about
    them as C(training.html), C(training.md), C(training.csv) and C(training.json).
  - The report contains the scaling table, published results next to it, each run with the check of its transport, its
    throughput and loss over the steps, the software of the nodes, the timelines of vMotion tests, and a list of missing
    measurements.
  - With O(fabric), the report also contains the bandwidth between the nodes.
  - A run whose transport could not be verified does not count in the scaling table, unless it ran on one node.
  - The same results produce the same files, so a second run changes nothing.
options:
  results:
    description: The folder with the results of runs. Without any result, the module fails and writes nothing.
    type: path
    required: true
  runs:
    description: The names of the runs in the report; V(*) stands for any text.
    type: str
    default: "*"
  folder:
    description: The folder for the report, which only its owner can read. The module creates it if it does not exist.
    type: path
    required: true
  vmotion_tests:
    description: The folder of vMotion tests; the report shows each C(timeline.json) below it.
    type: path
  fabric:
    description: The folder of the playbook fabric_check; the report shows the last check of each transport.
    type: path
  published:
    description: Published results, which the report shows next to the measured ones.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the publication.
        type: str
        required: true
      source:
        description: The source of the publication, and its measurement.
        type: str
        required: true
      runs:
        description: The figures, each with C(nodes), C(gpus), C(transport) and C(images_per_sec).
        type: list
        elements: dict
        required: true
  images_per_epoch:
    description:
      - The number of images of an epoch, to calculate the seconds of an epoch if no run measured them; V(0) leaves them
        out.
    type: int
    default: 0
  title:
    description: The title of the report.
    type: str
    default: Distributed training
  site:
    description: A caution about the site, such as that it is simulated, as the first line of the report and the table.
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Write the report about the runs of one scaling measurement
  dml.vsphere.training_report:
    results: "{{ playbook_dir }}/reports/runs"
    runs: scaling-*
    folder: "{{ playbook_dir }}/reports"
    images_per_epoch: 1281167
  delegate_to: localhost
  register: report

- name: Show the scaling table
  ansible.builtin.debug:
    msg: "{{ report.lines }}"
"""

RETURN = r"""
lines:
  description:
    - The scaling table as lines for a terminal, with the published results next to it, and the missing measurements.
  returned: success
  type: list
  elements: str
rows:
  description:
    - The scaling table, unrounded, with C(nodes), C(gpus), C(transport), C(images_per_sec), C(spread), C(speedup),
      C(efficiency), C(ratio_to_tcp) and C(seconds_per_epoch).
  returned: success
  type: list
  elements: dict
not_measured:
  description: The missing measurements, in sentences.
  returned: success
  type: list
  elements: str
files:
  description: The paths of the files.
  returned: success
  type: list
  elements: str
state:
  description: The checksum and mode of each file, and the mode of the folder; in check mode the planned ones.
  returned: success
  type: dict
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.pages import pairs_section, training_page, training_screen
from ..module_utils.training.reports import saved_results
from ..module_utils.training.reports.report_files import PRIVATE, ReportFiles
from ..module_utils.training.scaling import ScalingError

PUBLISHED = {
    "name": {"type": "str", "required": True},
    "source": {"type": "str", "required": True},
    "runs": {"type": "list", "elements": "dict", "required": True},
}
ARGUMENTS = {
    "results": {"type": "path", "required": True},
    "runs": {"type": "str", "default": "*"},
    "folder": {"type": "path", "required": True},
    "vmotion_tests": {"type": "path"},
    "fabric": {"type": "path"},
    "published": {"type": "list", "elements": "dict", "default": [], "options": PUBLISHED},
    "images_per_epoch": {"type": "int", "default": 0},
    "title": {"type": "str", "default": "Distributed training"},
    "site": {"type": "str", "default": ""},
}


def report_of(params: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the report."""
    runs = saved_results.runs(Path(params["results"]), params["runs"])
    result = {"title": params["title"], "site": params["site"], "images_per_epoch": params["images_per_epoch"] or None}
    try:
        report = training_page.report(runs, params["published"], **result)
    except ScalingError as error:
        raise Refused("published", "make a table of the published runs", str(error), "correct these runs") from error
    tests = saved_results.timelines(Path(params["vmotion_tests"])) if params["vmotion_tests"] else []
    checks = pairs_section.newest(saved_results.fabric_checks(Path(params["fabric"]))) if params["fabric"] else []
    if not (runs or tests or checks):
        reason = f"it has no run that matches {params['runs']!r}, and there is no vMotion test or bandwidth measurement"
        raise Refused(params["results"], "write a report", reason, "correct the folder or the names of the runs")
    more = {"vmotion_tests": tests, "fabric": checks}
    return {**report, **{key: found for key, found in more.items() if found}}


def texts_of(report: dict[str, Any]) -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        "training.html": training_page.page(report),
        "training.md": training_page.markdown(report),
        "training.csv": training_page.comma_separated(report),
        "training.json": json.dumps(report, indent=4, sort_keys=True) + "\n",
    }


def body(module: AnsibleModule) -> dict[str, Any]:
    report = report_of(module.params)
    files = ReportFiles(Path(module.params["folder"]), texts_of(report), PRIVATE)
    shown = {"lines": training_screen.lines(report), "rows": report["rows"], "not_measured": report["not_measured"]}
    return {**runner.converge_one(module, files), **shown, "files": files.paths}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
