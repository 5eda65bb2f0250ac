# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program of a role."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

from ..module_utils.durable.calls import Result
from ..module_utils.errors import CollectionError
from ..plugin_utils import facts
from ..plugin_utils.modules import CONNECTION, Modules

RUNNING_JOBS, NODE_FACTS, ROLLBACK, TRAINING = "running_jobs", "node_facts", "rollback", "training_"
# The programs of training that read only the variables of the host of the task.
OF_ONE_HOST = (f"{TRAINING}describe", f"{TRAINING}request")
ARGUMENTS: dict[str, Any] = {"name": {"type": "str", "required": True}, "options": {"type": "dict", "default": {}}}


class Planned:
    """Whether a task is only planned."""

    def __init__(self, check_mode: bool) -> None:
        self.check_mode = check_mode


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Checks the options of the program, and runs it on the controller."""

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> Result:
        result: dict[str, Any] = super().run(tmp, task_vars)
        # The modules check the options of the connection, which they get unchanged.
        connection = {name: {"type": "raw", "no_log": name in ("password", "proxy")} for name in CONNECTION}
        _validation, given = self.validate_argument_spec({**ARGUMENTS, **connection})
        is_check, known = self._task.check_mode, task_vars or {}
        try:
            _require_facts(given["name"], known)
        except CollectionError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, **self._outcome(given["name"], given["options"], known, is_check=is_check)}

    def _outcome(self, name: str, options: Result, known: Result, *, is_check: bool) -> Result:
        """Import and run a program: Ansible compiles each imported file of a collection again for each command."""
        if name == NODE_FACTS:
            return {}
        if name == RUNNING_JOBS:
            from ..plugin_utils import running_jobs

            return running_jobs.run(self, known, options, is_check=is_check)
        if name.startswith(TRAINING):
            from ..plugin_utils import training_programs

            return training_programs.run(self, known, name, is_check=is_check)
        from ..plugin_utils import role_programs

        if name == ROLLBACK:
            options = {**options, "command_line": sorted(load_extra_vars(self._loader))}
        return role_programs.run(name, options, Modules(self, known), Planned(is_check))


def _require_facts(program: str, task_vars: dict[str, Any]) -> None:
    """Refuse planted facts: of the host of the task, or of all workers if the program reads their variables."""
    if program == RUNNING_JOBS or (program.startswith(TRAINING) and program not in OF_ONE_HOST):
        facts.require_none_on_workers(task_vars)
    else:
        facts.require_no_variables(str(task_vars.get("inventory_hostname")), task_vars.get("ansible_facts"))
