# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a vMotion test step by step from its journal, and shows each step."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.modules import Modules
from ..plugin_utils.trial import Trial, show_plan


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Opens the folder of the test, then does its steps; in check mode it only shows the plan."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the result of the test."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        modules = Modules(self, task_vars or {})
        opened = modules.here("vmotion_test", self._task.args)
        if opened.get("failed"):
            return {**result, **opened}
        result.update(Trial(modules, opened).run() if opened["opened"] else show_plan(modules, opened))
        return result
