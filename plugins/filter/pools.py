# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the files of other tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.dml.vsphere.plugins.module_utils.guests import node_pools

TOOLS = {"skypilot": node_pools.skypilot, "dstack": node_pools.dstack}


def node_pool(workers: dict[str, dict[str, Any]], tool: str, name: str) -> dict[str, Any]:
    """Return the workers as machines of another tool."""
    if tool not in TOOLS:
        raise AnsibleFilterError(f"the tool is {tool!r}: expected one of {', '.join(TOOLS)}.")
    try:
        return dict(TOOLS[tool](name, workers))
    except node_pools.PoolError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"node_pool": node_pool}
