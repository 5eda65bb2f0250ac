#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: how the GPUs of a cluster are used, and the report about them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_usage
short_description: Read and report how the GPUs of a cluster are used
version_added: 1.0.0
description:
  - Reads every NVIDIA GPU of a cluster, with its mode, the used and free slots for virtual GPUs, the virtual machines
    on it, and its utilisation from vCenter's performance counters.
  - A value that was not measured is V(null), not a guess. NVIDIA's driver on the host does not see GPUs in
    passthrough, and vCenter keeps counters of GPUs for more than an hour only at the statistics level that they need.
  - Reports each GPU as idle, unassigned, not measured, unreachable or busy, the idle and the unassigned GPUs first. The
    report sums GPUs, hours and costs by tenant, and has one line for the unused share of the GPUs, so that the lines
    add up to all GPUs of the cluster.
  - Writes the report to O(folder) as C(CLUSTER.html), one page with a plot that needs no network, and C(CLUSTER.json).
    Both name virtual machines and their owners, so that only the owner of the files can read them. Without O(folder),
    the module writes nothing.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
  hours:
    description:
      - The number of past hours over which the counters are read. If vCenter kept no such counters, it is the last
        hour, and RV(usage.period) contains the reason.
    type: float
    default: 24
  group_by:
    description:
      - The property that names the tenant of a virtual machine. Its folder, its resource pool, its owner (a custom
        attribute called owner, or its notes), the custom attribute named in O(attribute), or its own tags of
        O(tag_category). Several tags together name one tenant. If several folders or resource pools have the same name,
        their tenants are named with the parents, such as C(teamA/prod).
    type: str
    choices: [folder, resource_pool, owner, attribute, tag]
    default: folder
  attribute: {description: The custom attribute that names the tenant; for O(group_by=attribute)., type: str}
  tag_category: {description: The category of tags that name the tenant; for O(group_by=tag)., type: str}
  price:
    description: The price of one whole GPU for one hour; a virtual GPU costs its share. Without it there are no costs.
    type: float
  currency: {description: "The currency, which is shown after each amount of money.", type: str, default: ""}
  idle_below:
    description: An assigned GPU is idle if its mean utilisation is below this percentage.
    type: float
    default: 5.0
  slurm_jobs:
    description:
      - The jobs of the period in Slurm, as C(sacct --allocations --truncate --parsable2 --noheader) lists them with
        C(--format=Account,User,ElapsedRaw,AllocTRES). The report sums the GPU hours of each account and user.
    type: list
    elements: str
    default: []
  folder: {description: The folder for the files. The module creates it if it does not exist., type: path}
  metrics:
    description:
      - The folder for the metrics in the text format of Prometheus, as C(dml_audit_CLUSTER.prom), such as that of the
        textfile collector of node_exporter. All users can read the file, which names no virtual machine and no tenant.
    type: path
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - Ansible logs the arguments of a module to the system log of the machine on which it runs. If they must not appear
    there, set the variable C(ansible_no_target_syslog) for the task, as the role P(dml.vsphere.audit#role) does.
  - The share of a virtual GPU is its share of the memory, from the name of its profile.
  - The PCI address in the name of a counter instance identifies the GPU. The counter of a complete host counts if the
    host has one GPU. RV(usage.period) names instances that cannot be assigned to a GPU.
seealso:
  - module: dml.vsphere.esxi_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Who uses which GPU?
  dml.vsphere.gpu_usage:
    cluster: gpu
    hours: 168
    group_by: attribute
    attribute: tenant
    price: 2.5
    currency: EUR
    folder: /var/lib/dml/audit
  register: found

- name: Show the idle GPUs of cluster gpu
  ansible.builtin.debug:
    msg: "{{ found.report.idle }}"

- name: Show the unassigned GPUs
  ansible.builtin.debug:
    msg: "{{ found.usage.gpus | rejectattr('users') | map(attribute='host') }}"
"""

RETURN = r"""
usage:
  description: The GPUs and their users.
  returned: success
  type: dict
  contains:
    cluster: {description: Name of the cluster., type: str}
    taken: {description: "The time of the reading, on vCenter's clock.", type: str}
    group_by: {description: The property that defines the tenant., type: str}
    period:
      description:
        - "The period of the counters: C(asked_hours), C(hours), C(since), C(until), C(sample_seconds), C(why) it is not
          the requested one, and C(unknown_instances)."
      type: dict
    gpus:
      description: Every GPU.
      type: list
      elements: dict
      contains:
        host: {description: Its host., type: str}
        reachable: {description: Whether vCenter reaches the host., type: bool}
        maintenance: {description: Whether the host is in maintenance mode., type: bool}
        address: {description: Its PCI address., type: str}
        name: {description: Its model., type: str}
        gigabytes: {description: Its memory., type: float}
        mode: {description: "V(vgpu), V(passthrough), V(shared), or, without a driver, V(basic) or V(none).", type: str}
        vgpu_mode: {description: "V(same_size), V(mixed_size), V(mig), or empty.", type: str}
        slots:
          description:
            - "Its places by profile: C(profile), C(used), C(free). An empty GPU shows the largest profile that it
              takes."
          type: list
          elements: dict
        users:
          description:
            - "The users and their shares: C(vm), C(tenant), C(folder), C(resource_pool), C(owner), C(what), C(share),
              C(running_hours), and C(card_told), which is V(false) if the server does not report the GPU and the module
              infers it. The shares of a GPU add up to at most one."
          type: list
          elements: dict
        utilisation:
          description:
            - "C(mean) and C(peak) in percent, C(memory_gb), C(samples), C(covered_hours); V(null) if not measured."
          type: dict
    waiting:
      description:
        - "Virtual machines that are off and need a GPU to run: C(host), C(vm), C(tenant), C(wants), and whether each
          of them by itself C(fits) now."
      type: list
      elements: dict
    lost:
      description: "Running virtual machines whose virtual GPU is on no GPU of their host: C(host), C(vm), C(profile)."
      type: list
      elements: dict
    unread:
      description:
        - "Unreachable hosts about whose GPUs vCenter has no data: C(host), C(reachable), C(maintenance)."
      type: list
      elements: dict
report:
  description:
    - The content of C(CLUSTER.json), with C(totals), C(idle), C(gpus), C(groups), C(slurm), C(waiting), C(lost),
      C(unread), C(period) and C(price).
  returned: success
  type: dict
lines:
  description: The report as tables for a terminal, sums and idle GPUs first.
  returned: success
  type: list
  elements: str
files:
  description: The paths of the files; empty without O(folder) and O(metrics).
  returned: success
  type: list
  elements: str
state:
  description:
    - The checksum and mode of each file in O(folder), or else in O(metrics), and the mode of the folder; in check mode
      those that they would get.
  returned: when O(folder) or O(metrics) is given
  type: dict
"""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.pages import usage_page
from ..module_utils.training.results.report_files import PRIVATE, ReportFiles, for_collector
from ..module_utils.usage import gpu_usage, usage_report, usage_text
from ..module_utils.usage.usage_report import Report
from ..module_utils.vsphere import session
from ..module_utils.vsphere.escaped_names import file_name

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "hours": {"type": "float", "default": 24.0},
    "group_by": {"type": "str", "choices": list(gpu_usage.GROUP_BY), "default": gpu_usage.FOLDER},
    "attribute": {"type": "str"},
    "tag_category": {"type": "str"},
    "price": {"type": "float"},
    "currency": {"type": "str", "default": ""},
    "idle_below": {"type": "float", "default": 5.0},
    "slurm_jobs": {"type": "list", "elements": "str", "default": []},
    "folder": {"type": "path"},
    "metrics": {"type": "path"},
}


def usage_of(params: runner.Params) -> runner.Result:
    """Read how the GPUs are used."""
    named = (params["attribute"] or "", params["tag_category"] or "")
    desired = gpu_usage.UsageOptions(params["cluster"], params["hours"], params["group_by"], *named)
    with session.session(params) as opened:
        return dict(gpu_usage.GpuUsage(opened, desired).read())


def files_of(folder: str, report: Report) -> ReportFiles:
    """Return the files of a report, with the name of its cluster."""
    content = json.dumps(report, indent=4) + "\n"
    name = file_name(str(report["cluster"]))
    return ReportFiles(Path(folder), {f"{name}.html": usage_page.page(report), f"{name}.json": content}, PRIVATE)


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    usage = usage_of(params)
    report = usage_report.report(usage, *(params[key] for key in ("price", "currency", "idle_below", "slurm_jobs")))
    answer = {"changed": False, "usage": usage, "report": report, "lines": usage_text.lines(report), "files": []}
    files = [files_of(params["folder"], report)] if params["folder"] else []
    if params["metrics"]:
        name = f"audit_{file_name(str(report['cluster']))}"
        files.append(for_collector(params["metrics"], name, usage_text.metrics(report)))
    if not files:
        return answer
    work = runner.Work(subjects=files, refresh=lambda _subjects: None)
    done = runner.converge(module, work)
    state = done.pop("hosts")[0].get("state")
    return {**answer, **done, "state": state, "files": [path for each in files for path in each.paths]}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **ARGUMENTS},
        supports_check_mode=True,
        required_if=[("group_by", gpu_usage.ATTRIBUTE, ["attribute"]), ("group_by", gpu_usage.TAG, ["tag_category"])],
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
