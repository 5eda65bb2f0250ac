"""Problems of a cluster that stop a change or make it unwise: each gives the one finding that names it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.hosts.preflight.cluster_findings import CheckedCluster, findings
from tests.unit.plugins.module_utils.hosts.preflight.preflight_data import alarm, clock, cluster, licence

ALL = frozenset({"vgpu", "vib", "pvrdma", "roce"})
TASK = {"object": "esx1", "task": "RebootHost", "user": "ann", "ours": False}
OUT = {"host": "esx1", "why": "maintenance", "ours": True, "by": "ann@c since 3"}
SLOTS = {"profile": "grid_t4-16c", "used": 3, "free": 1, "reserved": 0, "hosts": []}
HELD = {"held": True, "owner": "ann@c", "run": "c.1.2", "since": "2026", "until": "2027", "over": None}
# changed facts, severity, rule, words of the sentence
FACTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"configuration_profile": True}, "stop", "configuration_profile", "undo"),
    ({"image_managed": True}, "stop", "image_managed", "esxi_image"),
    ({"max_out_of_service": {"allowed": 0, "why": "1 host is there"}}, "stop", "capacity", "1 host is there"),
    ({"ha__enabled": False}, "note", "ha", "off"),
    ({"ha__admission_control": False}, "warn", "ha", "admission"),
    ({"ha__failover_hosts_now": 0}, "warn", "ha", "failure"),
    ({"drs__enabled": False}, "note", "drs", "DRS is off"),
    ({"drs__behaviour": "manual"}, "note", "drs", "manual"),
    ({"drs__options": {"PassthroughDrsAutomation": "1"}}, "warn", "drs", "PassthroughDrsAutomation"),
    ({"vcenter__version": "7.0.3"}, "stop", "version", "vCenter 7.0.3 is older than ESXi on esx1"),
    ({"vcenter__version": "9.0.0"}, "warn", "version", "images"),
    ({"options": {"vgpu.hotmigrate.enabled": False}}, "warn", "vmotion", "shared_settings"),
    ({"gpu_slots": [SLOTS]}, "note", "gpu_slots", "of 4 places for grid_t4-16c 1 are free"),
    ({"gpu_slots": [{**SLOTS, "free": 0}]}, "warn", "gpu_slots", "taken"),
    (
        {"gpu_slots": [{**SLOTS, "reserved": 2}]},
        "note",
        "gpu_slots",
        "of 6 places for grid_t4-16c 1 are free (2 reserved",
    ),
    (
        {"gpu_slots": [{**SLOTS, "free": 0, "reserved": 1}]},
        "warn",
        "gpu_slots",
        "all 4 places for grid_t4-16c are taken (1 reserved",
    ),
    ({"gpu_slots": [{**SLOTS, "profile": "grid_t4-8c"}]}, "warn", "gpu_slots", "choose one of grid_t4-8c"),
    ({"alarms": [alarm()]}, "warn", "alarm", "Host memory"),
    ({"alarms": [alarm(status="red", acknowledged=True)]}, "warn", "alarm", "red and acknowledged"),
    ({"lock": HELD}, "stop", "lock", "ann@c"),
    ({"lock": {**HELD, "over": "its process is gone"}}, "note", "lock", "left its lock behind: its process is gone"),
    ({"tasks": [TASK]}, "warn", "running_task", "RebootHost of ann"),
    ({"tasks": [{**TASK, "ours": True}]}, "note", "running_task", "RebootHost"),
    ({"out_of_service": [OUT]}, "note", "out_of_service", "ann@c"),
    ({"vsan": {"enabled": True, "resync_bytes": None}}, "warn", "vsan_resync", "does not report"),
    ({"clocks": [clock(offset_seconds=-61.0)]}, "warn", "clock", "-61.0 s"),
    ({"clocks": [clock(running=[])]}, "warn", "clock", "NTP"),
    ({"licences": [licence(expired=True, expires="2026")]}, "stop", "licence", "expired at 2026"),
    ({"licences": [licence(evaluation=True, expires="2027")]}, "note", "licence", "until 2027"),
    ({"licences": [licence(edition="esx.standard.cpuPackage")]}, "warn", "licence", "esx.standard"),
    ({"licences": [licence(edition="esx.enterprise.cpuPackage")]}, "warn", "licence", "esx.enterprise"),
    ({"licences": [licence(object="vc.lab", edition="vc.essentials.instance")]}, "warn", "licence", "vc.essentials"),
]


def triples(words: frozenset[str] = ALL, **changed: Any) -> list[tuple[str, str, str]]:
    checked = CheckedCluster(cluster(**changed), words, "grid_t4-16c")
    return [(finding.severity, finding.rule, finding.text) for finding in findings(checked)]


def test_a_good_cluster_gives_no_finding() -> None:
    assert triples() == []
    assert triples(alarms=[alarm(status="red")]) == []  # the stop rules report it


@pytest.mark.parametrize("edition", ["vc.standard.instance", "esx.vcf.cpuCoreMin", "esx.enterprisePlus.cpuPackage"])
def test_accepts_editions_with_vgpus_and_distributed_switches(edition: str) -> None:
    assert triples(licences=[licence(edition=edition)]) == []


@pytest.mark.parametrize(("changed", "severity", "rule", "words"), FACTS)
def test_each_problem_gives_one_finding(changed: dict[str, Any], severity: str, rule: str, words: str) -> None:
    ((its_severity, its_rule, text),) = triples(**changed)
    assert (its_severity, its_rule) == (severity, rule)
    assert words in text


def test_notes_an_image_if_no_vib_is_requested() -> None:
    assert [finding[:2] for finding in triples(frozenset({"pvrdma"}), image_managed=True)] == [
        ("note", "image_managed")
    ]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"moves": True, "network_card": True}, []),
        (None, [("warn", "esx1 has no device of class cx7, so workers with one cannot run there")]),
        (
            {"moves": False, "network_card": True},
            [("warn", "esx1 reports no vMotion support for its devices of class cx7")],
        ),
        (
            {"moves": True, "network_card": False},
            [("stop", "esx1 reports that devices of class cx7 are not network cards")],
        ),
    ],
)
def test_checks_the_device_class_on_each_host(found: Any, expected: list[tuple[str, str]]) -> None:
    hosts = [{"host": "esx1", "version": "8.0.3", "device_classes": {"cx7": found} if found else {}}]
    checked = CheckedCluster(cluster(hosts=hosts), ALL, "grid_t4-16c", card_classes=["cx7"])
    got = [(finding.severity, finding.text) for finding in findings(checked) if finding.rule == "device_class"]
    assert [severity for severity, _text in got] == [severity for severity, _words in expected]
    assert all(words in text for (_severity, text), (_expected, words) in zip(got, expected, strict=True))
    gpus = CheckedCluster(cluster(hosts=hosts), ALL, "grid_t4-16c", device_classes=["cx7"])
    others = [finding.severity for finding in findings(gpus) if finding.rule == "device_class"]
    assert others == [severity for severity, _words in expected if severity == "warn"]
