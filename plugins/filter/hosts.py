# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for rolling changes of ESXi hosts, and for the names of their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.maintenance import rolling_change
from ansible_collections.dml.vsphere.plugins.module_utils.vsphere import escaped_names


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "hosts_to_do": rolling_change.to_do,
            "unknown_hosts": rolling_change.unknown_hosts,
            "file_name": escaped_names.file_name,
        }
