# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the plan of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic import host_plan


def why_failed(result: Mapping[str, Any]) -> str:
    """The message of a failed task, or the sentences of the stop rules that it hit."""
    stops = [stop["text"] for stop in result.get("stops", [])]
    return "; ".join(stops) or str(result.get("msg", "it said nothing")).rstrip(".")


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "host_plan_lines": host_plan.lines,
            "hosts_left_out": host_plan.left_out,
            "hosts_to_do": host_plan.to_do,
            "why_failed": why_failed,
        }
