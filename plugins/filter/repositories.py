# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the repositories from which workers get their packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic.nodes import openpgp, packages, repositories


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "key_misfits": openpgp.key_misfits,
            "package_replacements": packages.replacements,
            "repository_faults": repositories.update_faults,
            "repository_misfits": repositories.misfits,
        }
