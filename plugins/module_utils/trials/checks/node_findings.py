"""All findings in the nodes of a job that forbid a stun: timers, licences, checkpoints and drivers; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.findings import NOTE, STOP, Finding, FindingRecord, as_dicts
from ...core.vgpu_manager import is_manager
from ...guests import nvidia
from ...guests.stack import fit_gpu
from . import guest_checks

PASSED_THROUGH = "Pass-Through"


def findings(
    nodes: Mapping[str, Any],
    budget: float,
    now: float,
    fitting: tuple[Iterable[Mapping[str, Any]], Mapping[str, Any]],
    *,
    lasts: float = 0.0,
    minutes: float = 0.0,
) -> list[FindingRecord]:
    """Return the findings as plain data.

    ``budget`` is the longest stun in seconds, ``lasts`` the shortest duration of the test in seconds, ``minutes`` the
    greatest age of a checkpoint (0: no check). ``fitting`` has the hosts of esxi_info with their VIBs, and the table
    stacks/facts/compatibility.yml.
    """
    inside = guest_checks.findings(nodes, budget, now, lasts=lasts, minutes=minutes or None)
    return as_dicts([*inside, *driver_findings(nodes, *fitting)])


def driver_findings(
    nodes: Mapping[str, Mapping[str, Any]], hosts: Iterable[Mapping[str, Any]], table: Mapping[str, Any]
) -> list[Finding]:
    """Return the drivers of nodes that do not fit the vGPU managers of the hosts, and the unknown pairs.

    ``nodes`` are those of read_guests.
    """
    managers = {str(host["host"]): version for host in hosts if (version := _manager(host))}
    misfits = []
    for node, driver in _drivers(nodes).items():
        stack = {"gpu_driver": {"version": driver}, "gpu": {"attachment": "vgpu"}}
        for host, version in sorted(managers.items()):
            misfits += [
                Finding(STOP if one.misfit else NOTE, "versions", node, f"on {host}: {one.sentence}")
                for one in fit_gpu.host_and_guest(stack, table, version)
            ]
    return misfits


def _drivers(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the driver of each node that has a virtual GPU."""
    reports = {node: nvidia.report(facts["nvidia"]) for node, facts in sorted(nodes.items()) if facts.get("nvidia")}
    return {
        node: report["driver"]
        for node, report in reports.items()
        if report["driver"] and any(gpu["mode"] != PASSED_THROUGH for gpu in report["gpus"])
    }


def _manager(host: Mapping[str, Any]) -> str:
    """Return the version of the vGPU manager that runs on a host; empty if none does."""
    running = (host.get("vibs") or {}).get("running") or []
    return next((str(vib["version"]) for vib in running if is_manager(vib["name"])), "")
