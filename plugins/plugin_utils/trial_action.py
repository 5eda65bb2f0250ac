# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frame of the actions around a running job: each makes its options into a request, and runs its program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils.durable.calls import Result
from ..module_utils.errors import CollectionError, Refused
from ..module_utils.jobs import around
from ..module_utils.trials.evidence.verdict_input import check_limits
from ..module_utils.trials.evidence.window_settings import require_known
from . import facts
from .declared_options import ROLE_OF_TRIALS, of_trial, specification
from .modules import CONNECTION, Modules
from .node_modules import Variables, require_user
from .role_options import role_options
from .running_jobs import clusters_around_job
from .trial import Kind, Request, carry_out, show_plan

# The options that a journal does not keep; the job names the defaults of others.
PATHS = ("dir", "folder", "metrics")
OF_THE_RUN = (*PATHS, "ending")


class TrialAction(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Carries out the program of its kind, or only shows the plan."""

    _supports_check_mode = True
    kind: Kind
    options: ClassVar[Mapping[str, Any]]

    def run(self, tmp: Any = None, task_vars: Any = None) -> Result:
        """Return the result of the program; in check mode, that of its plan."""
        result: Result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        carried_out = show_plan if self._task.check_mode else carry_out
        try:
            return {**result, **carried_out(Modules(self, task_vars), self._request(task_vars), self.kind)}
        except CollectionError as error:
            return {**result, "failed": True, "msg": str(error)}

    def _request(self, task_vars: Variables) -> Request:
        """Return the checked options of the task, with those of the role if it asks for them."""
        job: Mapping[str, Any] = {}
        if boolean(self._task.args.pop("of_role", False)):
            of_role = role_options(self, task_vars, ROLE_OF_TRIALS)
            # Its values are the defaults of other options.
            job = of_role.pop("job", None) or {}
            self._task.args = {**self._own(of_role), **self._task.args}
        # The modules check the options of the connection, which they get unchanged.
        connection = {name: {"type": "raw", "no_log": name in ("password", "proxy")} for name in CONNECTION}
        _validation, given = self.validate_argument_spec({**self.options, **connection})
        facts.require_none_on_workers(task_vars)
        around.require_one_cluster(clusters_around_job(task_vars))
        # A relative path is relative to the folder in which ansible-playbook was started.
        paths = {name: os.path.realpath(given[name]) if given[name] else "" for name in PATHS}
        request = request_of({**{name: given[name] for name in self.options}, **paths}, job)
        check_limits(request.settings["limits"])
        require_known(request.settings["window"])
        if request.settings["user"]:
            require_user(str(request.settings["user"]))
        return request

    def _own(self, of_role: Mapping[str, object]) -> dict[str, object]:
        """Return the options of this action; refuse those of another, which would be ignored."""
        for name in ("window", "observe"):
            if of_role.get(name) and name not in self.options:
                cause, remedy = f"they are for tasks_from={name} of the role", "leave them out, or include those tasks"
                raise Refused(f"{ROLE_OF_TRIALS}_{name}", "use these options", cause, remedy)
        return {name: value for name, value in of_role.items() if name in self.options}


def request_of(given: Mapping[str, Any], job: Mapping[str, Any]) -> Request:
    """Return options as a request, with what a window needs to restart the job."""
    settings = {"window": {}, "observe": {}, **{key: given[key] for key in given if key not in OF_THE_RUN}}
    if job.get("restart") and settings["window"]:
        settings["restart"] = job["restart"]
    return Request(settings, given["dir"], given["folder"], given["metrics"], given.get("ending") or "")


def options_of(*left_out: str) -> dict[str, Any]:
    """Return the options of an action, without those of other kinds."""
    return specification(of_trial(*left_out))
