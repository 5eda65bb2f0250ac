# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the observed state of a node with the desired state, on the controller, which has all data."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils.durable.calls import Result
from ..module_utils.guests import node_checks

ARGUMENTS = {
    "kind": {"type": "str", "required": True, "choices": sorted(node_checks.KINDS)},
    "found": {"type": "dict", "default": {}},
    "desired": {"type": "dict", "default": {}},
    "fail": {"type": "bool", "default": True},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Returns facts and misfits, and fails if there are misfits."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> Result:
        """Return facts, misfits, and one message about the misfits, for the valid options of the task."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(ARGUMENTS)
        return {**result, **answer(given, (task_vars or {}).get("inventory_hostname", "localhost"))}


def answer(given: dict[str, Any], node: str) -> Result:
    try:
        result, message = node_checks.check(given["kind"], node, given["found"], given["desired"])
    except (KeyError, TypeError, ValueError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        return {"failed": True, "msg": f"{node}: could not check {given['kind']}: {reason}"}
    facts = dict(result.facts)
    warnings = [f"{node}: {warning}" for warning in facts.pop("warnings", [])]
    values = {"changed": False, "facts": facts, "misfits": result.misfits, "warnings": warnings}
    return {**values, "failed": given["fail"], "msg": message} if message else values
