# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Whether the vGPU managers of hosts run the drivers that nodes have, by the table of what fits together; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.findings import NOTE, STOP, Finding
from ...core.vgpu_manager import is_manager
from ...guests import nvidia
from ...guests.stack import fit_gpu

PASSED_THROUGH = "Pass-Through"


def findings(
    nodes: Mapping[str, Mapping[str, Any]], hosts: Iterable[Mapping[str, Any]], table: Mapping[str, Any]
) -> list[Finding]:
    """What does not fit, and what nobody tells.

    ``nodes`` are those of training_guest_info, ``hosts`` those of esxi_info with their VIBs, ``table`` is
    stacks/facts/compatibility.yml.
    """
    managers = {str(host["host"]): version for host in hosts if (version := _manager(host))}
    found = []
    for node, driver in _drivers(nodes).items():
        stack = {"gpu_driver": {"version": driver}, "gpu": {"attachment": "vgpu"}}
        for host, version in sorted(managers.items()):
            found += [
                Finding(STOP if one.misfit else NOTE, "versions", node, f"on {host}: {one.sentence}")
                for one in fit_gpu.host_and_guest(stack, table, version)
            ]
    return found


def _drivers(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The driver of each node that has a virtual GPU."""
    told = {node: nvidia.report(seen["nvidia"]) for node, seen in sorted(nodes.items()) if seen.get("nvidia")}
    return {
        node: one["driver"]
        for node, one in told.items()
        if one["driver"] and any(gpu["mode"] != PASSED_THROUGH for gpu in one["gpus"])
    }


def _manager(host: Mapping[str, Any]) -> str:
    """The version of the vGPU manager that runs on a host; empty where none does."""
    running = (host.get("vibs") or {}).get("running") or []
    return next((str(vib["version"]) for vib in running if is_manager(vib["name"])), "")
