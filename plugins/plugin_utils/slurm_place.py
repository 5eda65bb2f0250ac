# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the workers of a job in Slurm that a user names by its number, and how the controller reaches them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.errors import Refused
from ..module_utils.slurm.named_job import located, place_on, read_job
from .modules import ROOT
from .node_modules import NodeModules
from .requested_options import ROLE
from .role_options import role_options

Options = Mapping[str, Any]
FILES = ("defaults/main.yml", "vars/main.yml")


def with_place(action: ActionBase, task_vars: Options, job: Options) -> dict[str, Any]:
    """Return the options of a job, with its place if it is named by its number in Slurm only."""
    slurm, hosts = job.get("slurm") or {}, task_vars["hostvars"]
    if not slurm or job.get("nodes"):
        return dict(job)
    workers = list(task_vars["groups"].get("workers") or [])
    login = str(slurm.get("login") or next(iter(workers), ""))
    number = str(slurm.get("job") or "")
    if login not in hosts:
        cause = f"its login node {login or '(none)'} is not a host of the inventory"
        raise Refused(f"job {number} in Slurm", "find it", cause, "set login to a host that has squeue")
    names = {name: [name, hosts[name].get("ansible_host"), _name_in_slurm(hosts[name])] for name in workers}
    nodes = NodeModules(action, task_vars)
    place = located(read_job(partial(nodes.on, login), number), number, names)
    launcher = place["launcher"]
    user = "" if place["user"] == hosts[launcher].get("ansible_user") else str(place["user"])
    on_launcher = partial((nodes.as_user(user) if user else nodes).on, launcher)
    records = place_on(on_launcher, number, str(job.get("records") or job.get("run_dir") or ""))
    return {
        **job,
        "launcher": launcher,
        "user": user,
        "run_dir": str(job.get("run_dir") or records),
        "records": records,
        "nodes": [{"name": name, "reach": _reach(action, task_vars, name, user)} for name in place["nodes"]],
        "slurm": {**slurm, **place["slurm"], "login": login},
    }


def _name_in_slurm(variables: Options) -> str:
    return str((variables.get(f"{ROLE}_slurm") or {}).get("node") or "")


def _reach(action: ActionBase, task_vars: Options, name: str, user: str) -> list[str]:
    """Return the command that reaches a worker, with the variables of the worker and the defaults of the role."""
    of_role: dict[str, Any] = {}
    for file in FILES:
        path = str(ROOT / "roles" / ROLE / file)
        of_role.update(action._loader.load_from_file(path, trusted_as_template=True))
    facts = {"ansible_facts": {"ansible_local": {"dml_node": {"user": user}}}, "hostvars": task_vars["hostvars"]}
    variables = {**of_role, **task_vars["hostvars"].raw_get(name), **facts}
    node = role_options(action, variables, ROLE, only=("reach",))
    return list(node["reach"])
