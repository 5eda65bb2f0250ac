# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for worker VMs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic.placement import worker_plan


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"worker_lines": worker_plan.lines, "worker_plan_lines": worker_plan.plan_lines}
