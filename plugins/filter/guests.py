# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for what runs inside of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic import (
    guest_packages,
    guest_settings,
    node_versions,
    rdma_bandwidth,
    rdma_gids,
    stun,
    task_failure,
)


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "node_versions": node_versions.collect,
            "package_misfits": guest_packages.misfits,
            "package_wishes": guest_packages.wishes,
            "python_misfits": guest_packages.python_misfits,
            "python_requirements": guest_packages.python_requirements,
            "rdma_bandwidth": rdma_bandwidth.average,
            "rdma_bandwidth_misfits": rdma_bandwidth.misfits,
            "rdma_gids": rdma_gids.choose,
            "setting_misfits": guest_settings.misfits,
            "stun_risks": stun.risks,
            "task_failure": task_failure.words,
            "version_differences": node_versions.differences,
            "version_table": node_versions.table,
        }
