# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for how the GPUs of a cluster are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic.usage import report, text
from ansible_collections.dml.vsphere.plugins.module_utils.pages import usage as usage_page


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "usage_lines": text.lines,
            "usage_page": usage_page.page,
            "usage_report": report.report,
        }
