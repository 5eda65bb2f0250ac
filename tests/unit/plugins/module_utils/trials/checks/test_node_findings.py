"""The drivers of nodes fit the vGPU managers of the hosts to which they may move, or are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.trials.checks import guest_checks

STACKS = Path(__file__).parents[6] / "stacks"
TABLE = yaml.safe_load((STACKS / "facts" / "compatibility.yml").read_text())


def node(driver: str, mode: str = "VGPU") -> dict[str, Any]:
    message = f"Driver Version : {driver}\nGPU 00000000:02:00.0\n    Virtualization Mode : {mode}\n"
    return {"nvidia": message}


def host(manager: str, name: str = "esx1") -> dict[str, Any]:
    vibs = [{"name": "esx-base", "version": "8.0.3"}, {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": manager}]
    return {"host": name, "vibs": {"running": vibs}}


@pytest.mark.parametrize(
    ("driver", "manager", "severity", "expected"),
    [
        ("580.65.06", "580.82.02-1OEM.800.1.0.20613240", "", ""),
        ("535.54.03", "580.82.02-1OEM.800.1.0.20613240", "", ""),
        ("580.65.06", "535.54.06-1OEM.800.1.0.20613240", "stop", "is newer than the vGPU manager 535.54.06"),
        ("550.54.14", "580.82.02-1OEM.800.1.0.20613240", "stop", "branches 580, 570, 535, but not 550.54.14"),
        ("535.54.03", "550.90.05-1OEM.800.1.0.20613240", "note", "only the same branch is known to fit"),
    ],
)
def test_compares_guest_driver_and_manager_of_each_host(
    driver: str, manager: str, severity: str, expected: str
) -> None:
    found = guest_checks.driver_findings({"w1": node(driver)}, [host(manager)], TABLE)
    assert [(one.severity, one.rule, one.object) for one in found] == (
        [(severity, "versions", "w1")] if severity else []
    )
    assert all(expected in one.text and one.text.startswith("on esx1: ") for one in found)


def test_ignores_machines_without_a_manager_or_vgpu() -> None:
    hosts = [host("418.66"), {"host": "esx2", "vibs": {"running": []}}, {"host": "esx3", "failed": True}]
    nodes = {"w1": node("580.65.06", "Pass-Through"), "w2": {"nvidia": None}, "w3": {"error": "silent"}}
    assert guest_checks.driver_findings(nodes, hosts, TABLE) == []
    found = guest_checks.driver_findings({"w1": node("580.65.06")}, hosts, TABLE)
    assert [one.text.partition(":")[0] for one in found] == ["on esx1"]
