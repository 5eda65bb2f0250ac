"""The facts about a cluster as plain data: slots, hosts out of service, alarms, licences, clocks, shares of GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.cluster import cluster_info
from plugins.module_utils.maintenance import cluster_problems
from plugins.module_utils.usage import gpu_usage
from plugins.module_utils.vsphere import host_clocks
from plugins.module_utils.vsphere.inventory import Host
from plugins.module_utils.workers.capacity.running_vm import Vm
from tests.fakes import hardware
from tests.fakes.hardware import T4

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def host(name: str = "esx1", **more: Any) -> Host:
    session: Any = SimpleNamespace(server="vcenter.lab")
    made = Host(session, vim.HostSystem(f"id-of-{name}"), name)
    made.properties = hardware.host(name=name, **more)
    return made


def vm(name: str, where: str, *vgpus: str) -> Vm:
    return Vm(f"vm-{name}", name, where, vgpus=vgpus)


def test_slots_are_counted_by_profile_and_host() -> None:
    found = cluster_info.slots_by_profile(
        [host("esx1"), host("esx2")], [vm("w1", "esx1", "grid_t4-16c"), vm("v1", "esx2")]
    )
    assert {one["profile"]: (one["used"], one["free"]) for one in found} == {
        "grid_t4-16c": (1, 1),
        "grid_t4-8c": (0, 2),
    }
    assert found[0]["hosts"] == [
        {"host": "esx1", "used": 1, "free": 0, "reserved": 0},
        {"host": "esx2", "used": 0, "free": 1, "reserved": 0},
    ]


@pytest.mark.parametrize(
    "why",
    [
        {"runtime__inMaintenanceMode": True},
        {"runtime__inQuarantineMode": True},
        {"runtime__connectionState": "notResponding"},
    ],
)
def test_hosts_out_of_service_have_no_slots(why: dict[str, Any]) -> None:
    assert cluster_info.slots_by_profile([host(**why)], []) == []


def test_gpus_without_direct_sharing_have_no_slots() -> None:
    (found,) = cluster_info.slots_by_profile(
        [
            host(
                config__graphicsInfo=[hardware.graphics(graphicsType="shared")],
                config__sharedPassthruGpuTypes=["grid_t4-16c"],
            )
        ],
        [],
    )
    assert (found["used"], found["free"], found["hosts"]) == (0, 0, [])


def session_with(**content: Any) -> Any:
    return SimpleNamespace(server="vcenter.lab", content=SimpleNamespace(**content))


def entered(user: str, minute: int) -> Any:
    return SimpleNamespace(userName=user, createdTime=NOW + timedelta(minutes=minute))


def test_lists_hosts_out_of_service_with_their_reasons() -> None:
    events = SimpleNamespace(QueryEvents=lambda _filter: [entered("anna", 1), entered("", 3), entered("bert", 2)])
    there = [
        host("esx1"),
        host("esx2", runtime__inMaintenanceMode=True),
        host("esx3", runtime__inQuarantineMode=True),
        host("esx4", runtime__connectionState="notResponding"),
    ]
    found = cluster_problems.out_of_service(session_with(eventManager=events), there)
    assert [(one["host"], one["why"], one["by"]) for one in found] == [
        ("esx2", "maintenance", "bert since 2026-01-01T12:02:00Z"),
        ("esx3", "quarantine", None),
        ("esx4", "notResponding", None),
    ]


def test_red_and_yellow_alarms_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def alarm(key: str, status: str) -> Any:
        ref = vim.alarm.Alarm("alarm-1")
        entity = vim.HostSystem("host-1")
        return SimpleNamespace(
            key=key, overallStatus=status, alarm=ref, entity=entity, time=NOW, acknowledged=key == "b"
        )

    monkeypatch.setattr(
        cluster_problems, "read_many", lambda _s, refs, _paths: {one._moId: {"info.name": "Heat"} for one in refs}
    )
    states = [alarm("b", "yellow"), alarm("a", "red"), alarm("a", "red"), alarm("c", "green")]
    found = cluster_problems.alarms(session_with(), {"host-1": "esx1"}, states)
    assert [(one["object"], one["alarm"], one["status"], one["acknowledged"]) for one in found] == [
        ("esx1", "Heat", "red", False),
        ("esx1", "Heat", "yellow", True),
    ]


def licence(**properties: Any) -> Any:
    made = [SimpleNamespace(key=key, value=value) for key, value in properties.items()]
    made.append(SimpleNamespace(key="feature", value=SimpleNamespace(value="vgpu")))
    return SimpleNamespace(name="Enterprise", editionKey=properties.get("edition", "esx.enterprise"), properties=made)


@pytest.mark.parametrize(
    ("properties", "expires", "expired"),
    [
        ({}, None, False),
        ({"expirationDate": NOW + timedelta(days=1)}, "2026-01-02T12:00:00Z", False),
        ({"expirationHours": 24}, "2026-01-02T12:00:00Z", False),
        ({"expirationMinutes": 60}, "2026-01-01T13:00:00Z", False),
        ({"expirationDate": NOW}, "2026-01-01T12:00:00Z", True),
        ({"expirationHours": 0}, "2026-01-01T12:00:00Z", True),
    ],
)
def test_reads_licence_expiration_in_each_format(
    properties: dict[str, Any], expires: str | None, expired: bool
) -> None:
    entries = [SimpleNamespace(entityId=key, assignedLicense=licence(**properties)) for key in ("host-1", "host-9")]
    manager = SimpleNamespace(QueryAssignedLicenses=lambda _entity: entries)
    content = {"licenseManager": SimpleNamespace(licenseAssignmentManager=manager)}
    about = SimpleNamespace(instanceUuid="uuid")
    (found,) = cluster_info.licences(session_with(about=about, **content), {"host-1": "esx1"}, NOW)
    assert (found["object"], found["expires"], found["expired"], found["features"]) == (
        "esx1",
        expires,
        expired,
        ["vgpu"],
    )


def test_reports_an_evaluation_licence_but_never_keys() -> None:
    entry = SimpleNamespace(entityId="uuid", assignedLicense=licence(edition="eval", key="12345-SECRET"))
    manager = SimpleNamespace(QueryAssignedLicenses=lambda _entity: [entry])
    content = {"licenseManager": SimpleNamespace(licenseAssignmentManager=manager)}
    (found,) = cluster_info.licences(session_with(about=SimpleNamespace(instanceUuid="uuid"), **content), {}, NOW)
    assert (found["object"], found["evaluation"]) == ("vcenter.lab", True)
    assert "SECRET" not in str(found)


def test_subtracts_network_delay_from_host_clock_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    # The answer of vCenter takes two seconds, and that of each host four.
    monotonic, times = iter([100.0, 102.0, 103.0, 107.0, 107.0, 111.0]), iter([NOW])
    monkeypatch.setattr(host_clocks.time, "monotonic", lambda: next(monotonic))
    monkeypatch.setattr(host_clocks, "server_time", lambda _session: next(times))
    monkeypatch.setattr(host_clocks, "PARALLEL", 1)
    clocks = iter([NOW + timedelta(seconds=14), NOW + timedelta(seconds=8)])
    there = SimpleNamespace(QueryDateTime=lambda: next(clocks))
    ntp = SimpleNamespace(ntpConfig=SimpleNamespace(server=["ntp.lab"]))
    services = [SimpleNamespace(key="ntpd", running=True), SimpleNamespace(key="ptpd", running=False)]
    values = {"configManager__dateTimeSystem": there, "config__dateTimeInfo": ntp, "config__service__service": services}
    read = {"host": "esx1", "running": ["ntpd"], "servers": ["ntp.lab"]}
    found = host_clocks.clocks(session_with(), [host(**values), host(**values)], compare=True)
    assert found == [{**read, "offset_seconds": 10.0}, {**read, "offset_seconds": 0.0}]


def test_compares_clocks_of_reachable_hosts_only_on_request() -> None:
    for one, compare in ((host(), False), (host(runtime__connectionState="notResponding"), True)):
        assert host_clocks.clocks(session_with(), [one], compare=compare)[0]["offset_seconds"] is None


@pytest.mark.parametrize(
    ("device", "running", "found"),
    [
        (hardware.passed(T4.upper()), False, ((T4,), 0)),
        (hardware.passed_any(assigned=T4.upper()), True, ((T4,), 0)),
        (hardware.passed_any(), False, ((), 1)),
        (hardware.passed_any(assigned=T4), False, ((), 1)),
        (hardware.passed_any(0x1019, vendor=hardware.MELLANOX), False, ((), 0)),
        (hardware.passed(hardware.NIC, hardware.MELLANOX), True, ((), 0)),
        (hardware.vgpu(), True, ((), 0)),
    ],
)
def test_finds_passthrough_gpus_with_and_without_address(device: Any, running: bool, found: Sequence[Any]) -> None:
    assert gpu_usage._whole(hardware.vm("w1", device), [T4], running=running) == found


@pytest.mark.parametrize(
    ("graphics", "passed", "mode", "gigabytes"),
    [
        ([hardware.graphics(T4, "vm-1")], [], "vgpu", 15),
        ([hardware.graphics(graphicsType="shared")], [], "shared", 15),
        ([], [hardware.passthrough_of()], "passthrough", 16),
        ([hardware.graphics(graphicsType="direct", memorySizeInKB=0)], [], "passthrough", 16),
        ([], [], "none", 16),
    ],
)
def test_reports_use_and_memory_of_each_gpu(graphics: Any, passed: Any, mode: str, gigabytes: float) -> None:
    devices = [hardware.pci_device(), hardware.pci_device(hardware.NVSWITCH, 0x1AF1, hardware.BRIDGE)]
    values = {"config__graphicsInfo": graphics, "config__pciPassthruInfo": passed, "hardware__pciDevice": devices}
    (card,) = gpu_usage._cards(host(**values))
    assert (card.address, card.mode, card.gigabytes) == (T4, mode, gigabytes)
    assert card.listed == (("vm-1",) if mode == "vgpu" else ())
