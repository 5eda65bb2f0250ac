# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the software of workers."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.dml.vsphere.plugins.module_utils.guests import software_packages, task_failure


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {
            "kernel_packages": software_packages.packages,
            "package_specs": software_packages.specs,
            "task_failure": task_failure.message_of,
        }
