# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for findings and stop rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.core import findings


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"finding_lines": findings.lines, "finding_stops": findings.stops}
