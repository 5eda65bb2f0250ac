#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the report on the GPUs of a cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_usage_report
short_description: Report how the GPUs of a cluster are used
version_added: 1.0.0
description:
  - Judges a result of M(dml.vsphere.gpu_usage_info). Each GPU is idle, unassigned, not measured, unreachable or busy;
    the report names the idle and the unassigned GPUs first. It sums GPUs, hours and costs by tenant, and has one line
    for the unused share of the GPUs, so that the lines add up to all GPUs of the cluster.
  - Writes the report to O(folder) as C(CLUSTER.html), one page with a plot that needs no network, and C(CLUSTER.json).
    Both name virtual machines and their owners, so that only the owner of the files can read them.
  - Without O(folder) it returns the report and writes nothing.
options:
  usage:
    description: The RV(dml.vsphere.gpu_usage_info#module:usage) of a result of M(dml.vsphere.gpu_usage_info).
    type: dict
    required: true
  price:
    description: The price of one whole GPU for one hour; a virtual GPU costs its share. Without it there are no costs.
    type: float
  currency:
    description: The currency, which is shown after each amount of money.
    type: str
    default: ""
  idle_below:
    description: An assigned GPU is idle if its mean utilisation is below this percentage.
    type: float
    default: 5.0
  folder:
    description: The folder for the files. The module creates it if it does not exist.
    type: path
extends_documentation_fragment:
  - dml.vsphere.attributes
notes:
  - Ansible logs the arguments of a module to the system log of the machine on which it runs. If the names of virtual
    machines and owners must not appear there, set the variable C(ansible_no_target_syslog) for the task, as the role
    P(dml.vsphere.audit#role) does.
seealso:
  - module: dml.vsphere.gpu_usage_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read how the GPUs of cluster gpu are used
  dml.vsphere.gpu_usage_info:
    cluster: gpu
  register: found

- name: Write the report on the GPUs of cluster gpu
  dml.vsphere.gpu_usage_report:
    usage: "{{ found.usage }}"
    price: 2.5
    currency: EUR
    folder: /var/lib/dml/audit
  delegate_to: localhost
  register: audit

- name: Show the idle GPUs of cluster gpu
  ansible.builtin.debug:
    msg: "{{ audit.report.idle }}"
"""

RETURN = r"""
report:
  description:
    - The report as it is in C(CLUSTER.json), with C(totals), C(idle), C(gpus), C(groups), C(waiting), C(lost),
      C(period) and C(price).
  returned: success
  type: dict
lines:
  description: The report as tables for a terminal, sums and idle GPUs first.
  returned: success
  type: list
  elements: str
files:
  description: The paths of the files; empty without O(folder).
  returned: success
  type: list
  elements: str
state:
  description: The checksum and mode of each file, and the mode of the folder; in check mode those that they would get.
  returned: when O(folder) is given
  type: dict
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.pages import usage_page
from ..module_utils.training.reports.report_files import PRIVATE, ReportFiles
from ..module_utils.usage import usage_report, usage_text
from ..module_utils.vsphere.escaped_names import file_name

ARGUMENTS = {
    "usage": {"type": "dict", "required": True},
    "price": {"type": "float"},
    "currency": {"type": "str", "default": ""},
    "idle_below": {"type": "float", "default": 5.0},
    "folder": {"type": "path"},
}


def report_of(params: dict[str, Any]) -> dict[str, Any]:
    """The report on a result of gpu_usage_info."""
    try:
        return usage_report.report(params["usage"], params["price"], params["currency"], params["idle_below"])
    except KeyError as error:
        remedy = "give the usage that gpu_usage_info returned"
        raise Refused("usage", "report how the GPUs are used", f"it has no {error}", remedy) from error


def files_of(folder: str, judged: dict[str, Any]) -> ReportFiles:
    """The files of a report, named by its cluster."""
    content = json.dumps(judged, indent=4) + "\n"
    name = file_name(str(judged["cluster"]))
    return ReportFiles(Path(folder), {f"{name}.html": usage_page.page(judged), f"{name}.json": content}, PRIVATE)


def body(module: AnsibleModule) -> dict[str, Any]:
    judged = report_of(module.params)
    answer = {"changed": False, "report": judged, "lines": usage_text.lines(judged), "files": []}
    if not module.params["folder"]:
        return answer
    files = files_of(module.params["folder"], judged)
    return {**answer, **runner.converge_one(module, files), "files": files.paths}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
