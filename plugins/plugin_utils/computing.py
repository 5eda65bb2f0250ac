# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the result of a task on the controller, from its options, without a connection or a write."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase


class ComputingAction(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """An action whose result depends only on its options and on the name of its host."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    OPTIONS: Mapping[str, Any]

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the result for the valid options of the task."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(self.OPTIONS)
        return {**result, **self.result_of(given, (task_vars or {}).get("inventory_hostname", "localhost"))}

    @abstractmethod
    def result_of(self, given: dict[str, Any], host: str) -> dict[str, Any]:
        """Return the result of the task on a host."""
