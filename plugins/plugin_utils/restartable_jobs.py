# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps what a maintenance window needs to restart a run, and makes the run of it, also on another controller."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ansible.plugins.action import ActionBase

from ..module_utils.errors import CollectionError, NotFound
from ..module_utils.kubernetes.suspension import SuspendableJob
from ..module_utils.slurm.requeued_job import RequeuedJob
from ..module_utils.training.programs.follow import TrainingSite
from ..module_utils.training.programs.restart import RestartableRun
from ..module_utils.training.programs.restart_commands import OthersJob
from ..module_utils.training.results import saved_manifests
from ..module_utils.training.runs import run_source
from ..module_utils.training.runs.restartable import NotRestartable, Restartable
from ..module_utils.training.runs.training_options import Options
from ..module_utils.training.runs.training_run import TrainingRun
from .modules import Modules
from .node_modules import NodeModules, Variables
from .requested_options import ENVIRONMENT, ROLE
from .training_site import JOBS, LIBRARY, TrainingSetup, with_variables
from .world import NodeWorld


def kept(setup: TrainingSetup, name: str) -> dict[str, Any]:
    """Return the options and the nodes of a run, or ``why`` it cannot be restarted from here.

    The values of its variables may be secrets, which stay where the user has them.
    """
    try:
        run = setup.attempt(name)
    except CollectionError as error:
        return {"run": name, "why": str(error)}
    nodes = {
        each: {**node, "facts": _facts(node), "ansible_host": setup.ansible_host(each)}
        for each, node in run.nodes.items()
    }
    o = {key: value for key, value in run.o.items() if key != ENVIRONMENT}
    return {"run": name, "options": o, "nodes": nodes}


def _facts(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a node that a run needs: those of its adapter, and what roles recorded."""
    adapter = str(node["interface"]).replace("-", "_").replace(":", "_")
    return {key: node["facts"][key] for key in (adapter, "ansible_local") if key in node["facts"]}


def restartable(action: ActionBase, task_vars: Variables, content: Mapping[str, Any], by: str) -> Restartable:
    """Return the run of what ``kept`` returned; with another name as ``run``, another attempt of it."""
    name = str(content["run"])
    if content.get("why"):
        return NotRestartable(f"the training run {name}", str(content["why"]))
    nodes = NodeModules(action, task_vars)
    if "job" in content:
        user = str(content["job"].get("user") or "")
        calls = NodeWorld(Modules(action, task_vars), nodes.as_user(user) if user else nodes, ROLE)
        if content["job"].get("kubernetes"):
            return SuspendableJob(calls, content["job"], by)
        return (RequeuedJob if content["job"].get("slurm") else OthersJob)(calls, content["job"])
    # The inventory of a later controller has no address of a worker that the window has shut down.
    nodes.addresses = {each: str(node.get("ansible_host") or "") for each, node in content["nodes"].items()}
    variables = task_vars["hostvars"][content["options"]["launcher"]].get(f"{ROLE}_{ENVIRONMENT}") or {}
    given = {**content["options"], ENVIRONMENT: variables, "name": name, "resume": "", "repeat": ""}
    o: Options = cast("Options", given)
    calls = NodeWorld(Modules(action, task_vars), nodes.as_user(str(o["user"])) if o["user"] else nodes, ROLE)
    run = TrainingRun(o, content["nodes"], name, name, by)
    # Without a manifest, its refusal says so.
    with contextlib.suppress(NotFound):
        known = saved_manifests.read(Path(o["results"]) / name)
        run = run_source.taken_up(replace(run, o=with_variables(o, known)), known)
    job_of = partial(JOBS[o["backend"]], calls)
    return RestartableRun(TrainingSite(calls, job_of, str(LIBRARY), str(o["results"])), run, by)
