# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries a vMotion test out, step by step as its journal tells, and shows each step."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.modules import Modules
from ..plugin_utils.trial import Trial, begin


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Opens the folder of the test, then does one step after the other; in check mode it shows the plan."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """The end of the test."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        modules = Modules(self, task_vars or {})
        opened = modules.here("vmotion_test", self._task.args)
        if opened.get("failed"):
            return {**result, **opened}
        result.update(Trial(modules, opened).carry_out() if opened["opened"] else begin(modules, opened))
        return result
