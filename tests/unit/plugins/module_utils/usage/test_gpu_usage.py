"""The GPUs of a cluster as vCenter shows them, also while it does not reach a host."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.usage import gpu_usage, usage_report, usage_text
from plugins.module_utils.usage.gpu_usage import GpuUsage, UsageOptions
from plugins.module_utils.vsphere import host_clocks, inventory, properties
from plugins.module_utils.vsphere.inventory import Host
from tests.fakes import hardware
from tests.unit.plugins.module_utils.usage.reports import PERIOD

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SESSION: Any = SimpleNamespace(server="vcenter.lab", api_version=(8, 0, 3))


def host(name: str, **more: Any) -> Host:
    made = Host(SESSION, vim.HostSystem(f"id-of-{name}"), name)
    made.properties = hardware.host(name=name, hardware__pciDevice=[hardware.pci_device()], **more)
    return made


def disconnected(name: str) -> Host:
    """A host of which vCenter has only the name and the state."""
    made = Host(SESSION, vim.HostSystem(f"id-of-{name}"), name)
    made.properties = {"name": name, "runtime.connectionState": "disconnected", "runtime.inMaintenanceMode": False}
    return made


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The objects of vCenter, by ID."""
    content: dict[str, dict[str, Any]] = {}

    def retrieve(_session: Any, specs: list[Any], _kind: Any, paths: Any) -> list[Any]:
        refs = [spec.obj for spec in specs]
        return [(ref, {path: content[ref._moId].get(path) for path in paths}) for ref in refs]

    monkeypatch.setattr(properties, "_retrieve", retrieve)
    return content


def usage_of(monkeypatch: pytest.MonkeyPatch, *hosts: Host) -> dict[str, Any]:
    found = SimpleNamespace(hosts=hosts, refresh=lambda: None)
    monkeypatch.setattr(inventory, "find_hosts", lambda *_arguments: found)
    monkeypatch.setattr(host_clocks, "server_time", lambda _session: NOW)
    monkeypatch.setattr(gpu_usage, "read", lambda *_arguments: gpu_usage.MeasuredLoad(PERIOD))
    return GpuUsage(SESSION, UsageOptions("gpu", 24, gpu_usage.FOLDER)).read()


def test_report_and_metrics_keep_a_disconnected_host(monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu = host("esx3", runtime__connectionState="disconnected")
    no_gpu.properties |= {"hardware.pciDevice": [hardware.pci_device(hardware.NIC, 0x1017, 0x200, hardware.MELLANOX)]}

    report = usage_report.report(usage_of(monkeypatch, host("esx1"), disconnected("esx2"), no_gpu))

    assert [gpu["host"] for gpu in report["gpus"]] == ["esx1"]
    assert usage_text.lines(report)[-1] == "esx2 is unreachable, and vCenter has no data about its GPUs"
    reached = [line for line in usage_text.metrics(report).splitlines() if line.startswith("dml_audit_host_reachable")]
    assert reached == [
        'dml_audit_host_reachable{cluster="gpu",host="esx1"} 1',
        'dml_audit_host_reachable{cluster="gpu",host="esx2"} 0',
    ]


def test_folders_with_the_same_name_are_two_tenants(
    monkeypatch: pytest.MonkeyPatch, objects: dict[str, dict[str, Any]]
) -> None:
    hosts = []
    for number, team in enumerate(("teamA", "teamB"), start=1):
        folder, vm = vim.Folder(f"prod-of-{team}"), vim.VirtualMachine(f"vm-{number}")
        objects[team], objects[folder._moId] = {"name": team}, {"name": "prod", "parent": vim.Folder(team)}
        objects[vm._moId] = hardware.vm(f"w{number}", hardware.vgpu(), parent=folder)
        hosts.append(host(f"esx{number}", vm=[vm]))

    report = usage_report.report(usage_of(monkeypatch, *hosts))

    assert [(group["tenant"], group["gpus"]) for group in report["groups"][:-1]] == [
        ("teamA/prod", 1.0),
        ("teamB/prod", 1.0),
    ]
