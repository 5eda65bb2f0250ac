# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for the GPUs of workers, and for CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.logic.nodes import nvidia


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "cuda_device_misfits": nvidia.device_misfits,
            "cuda_misfits": nvidia.cuda_misfits,
            "gpu_driver_misfits": nvidia.driver_misfits,
            "gpu_report": nvidia.report,
            "gpu_uuids": nvidia.uuids,
        }
