# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs an observation, and shows what happens."""

from __future__ import annotations

from typing import Any, ClassVar

from ..module_utils.durable.calls import Result
from ..plugin_utils.trial import OBSERVATION
from ..plugin_utils.trial_action import TrialAction, options_of


class ActionModule(TrialAction):
    """Judges a job while others move its workers."""

    kind = OBSERVATION
    options: ClassVar[dict[str, Any]] = options_of("window")

    def run(self, tmp: Any = None, task_vars: Any = None) -> Result:
        """Return the result of the program; in check mode, that of its plan."""
        return self.carried_out(super().run(tmp, task_vars), task_vars or {}, is_check=self._task.check_mode)
