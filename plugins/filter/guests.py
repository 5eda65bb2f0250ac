# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for what runs inside of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic.migration import stun
from ansible_collections.dml.vsphere.plugins.module_utils.logic.nodes import (
    packages,
    rdma_bandwidth,
    rdma_gids,
    settings,
    task_failure,
    versions,
)


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "node_versions": versions.collect,
            "package_misfits": packages.misfits,
            "package_wishes": packages.desired_workers,
            "python_misfits": packages.python_misfits,
            "python_requirements": packages.python_requirements,
            "rdma_bandwidth": rdma_bandwidth.average,
            "rdma_bandwidth_misfits": rdma_bandwidth.misfits,
            "rdma_gids": rdma_gids.choose,
            "setting_misfits": settings.misfits,
            "stun_risks": stun.risks,
            "task_failure": task_failure.words,
            "version_differences": versions.differences,
            "version_table": versions.table,
        }
