# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter for the names of objects of vCenter."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.dml.vsphere.plugins.module_utils.vsphere import escaped_names


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"file_name": escaped_names.file_name}
