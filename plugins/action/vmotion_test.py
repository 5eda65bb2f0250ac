# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a vMotion test, a maintenance window or an observation, and shows what happens."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils.errors import CollectionError
from ..module_utils.trials.evidence.verdict_input import check_limits
from ..module_utils.trials.evidence.window_settings import require_known
from ..plugin_utils import facts
from ..plugin_utils.declared_options import of_vmotion_test, specification
from ..plugin_utils.modules import CONNECTION, Modules
from ..plugin_utils.node_modules import require_user
from ..plugin_utils.role_options import role_options
from ..plugin_utils.trial import carry_out, show_plan

ROLE = "vmotion_test"
OPTIONS = {**specification(of_vmotion_test()), "ending": {"type": "str", "default": ""}}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Runs the program that the options ask for; in check mode it only shows the plan."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the result of the test."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        job: dict[str, Any] = {}
        if boolean(self._task.args.pop("of_role", False)):
            of_role = role_options(self, task_vars or {}, ROLE)
            # Its values are the defaults of other options.
            job = of_role.pop("job", None) or {}
            self._task.args = {**of_role, **self._task.args}
        # The modules check the options of the connection, which they get unchanged.
        connection = {name: {"type": "raw", "no_log": name in ("password", "proxy")} for name in CONNECTION}
        _validation, options = self.validate_argument_spec({**OPTIONS, **connection})
        given = {**{name: options[name] for name in OPTIONS}, "job": job}
        run = show_plan if self._task.check_mode else carry_out
        try:
            facts.require_none_on_workers(task_vars or {})
            if self._task.become:
                require_user(str(self._task.become_user))
            check_limits(given["limits"])
            require_known(given["window"])
            return {**result, **run(Modules(self, task_vars or {}), given)}
        except CollectionError as error:
            return {**result, "failed": True, "msg": str(error)}
