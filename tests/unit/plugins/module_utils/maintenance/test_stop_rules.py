"""How many hosts may be out at once, and what stops the next ones."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.maintenance import stop_rules
from plugins.module_utils.maintenance.stop_rules import LeavingHosts

T4 = "grid_t4-16c"


def slots(*hosts: tuple[int, int]) -> dict[str, Any]:
    rows = [{"host": f"esx{number}", "used": used, "free": free} for number, (used, free) in enumerate(hosts, 1)]
    return {
        "profile": T4,
        "used": sum(used for used, _free in hosts),
        "free": sum(free for _used, free in hosts),
        "hosts": rows,
    }


def cluster(**more: Any) -> dict[str, Any]:
    sound = {
        "name": "gpu",
        "hosts": [{"host": f"esx{number}", "connection": "connected"} for number in range(1, 6)],
        "ha": {"enabled": False, "admission_control": False, "failover_hosts": None},
        "gpu_slots": [],
        "alarms": [],
        "vsan": {"resync_bytes": 0},
        "out_of_service": [],
        "tasks": [],
        "remediations": [],
    }
    return {**sound, **more}


HA = {"enabled": True, "admission_control": True, "failover_hosts": 1}
OUT = {"host": "esx2", "why": "maintenance", "ours": False, "by": "bob"}


@pytest.mark.parametrize(
    ("facts", "allowed", "why"),
    [
        ({}, 4, "the cluster has 5 hosts"),
        ({"ha": HA}, 1, "keeps 1 host free"),
        ({"ha": {**HA, "enabled": False}}, 4, "5 hosts"),
        ({"ha": {**HA, "failover_hosts": None}}, 4, "5 hosts"),
        ({"gpu_slots": [slots((1, 0), (1, 0), (0, 1))]}, 1, T4),
        ({"gpu_slots": [slots((1, 0), (1, 0))]}, 0, T4),
        ({"gpu_slots": [slots((1, 0), (0, 1), (0, 1), (0, 1))]}, 3, T4),
        ({"gpu_slots": [slots((0, 1), (0, 1))]}, 4, "5 hosts"),
    ],
)
def test_applies_the_tightest_limit(facts: dict[str, Any], allowed: int, why: str) -> None:
    found, sentence = stop_rules.allowed(cluster(**facts))
    assert found == allowed and why in sentence


@pytest.mark.parametrize(
    ("policy", "details", "hosts"),
    [
        ("hosts", {"level": 2}, 2),
        ("dedicated", {"hosts": ["a"]}, 1),
        ("percent", {"cpu": 25, "memory": 50}, 2),
        ("percent", {"cpu": None, "memory": 50}, 4),
        ("percent", {}, None),
        ("unknown", {}, None),
    ],
)
def test_reads_the_reserve_of_each_policy(policy: str, details: dict[str, Any], hosts: int | None) -> None:
    assert stop_rules.failover_hosts(policy, 8, details) == hosts


LOST = [{"host": "esx1", "connection": "connected"}, {"host": "esx2", "connection": "notResponding"}]
RED = {"object": "esx3", "alarm": "Host memory", "status": "red", "since": "then", "acknowledged": False}
TASK = {"object": "esx1", "task": "reconfigure", "user": "bob", "ours": False}


@pytest.mark.parametrize(
    ("facts", "leaving", "rules"),
    [
        ({}, LeavingHosts(("esx1",)), set()),
        ({"alarms": [RED]}, LeavingHosts(("esx1",)), {"red_alarm"}),
        ({"alarms": [{**RED, "acknowledged": True}]}, LeavingHosts(("esx1",)), set()),
        ({"alarms": [{**RED, "status": "yellow"}]}, LeavingHosts(("esx1",)), set()),
        ({"alarms": [RED]}, LeavingHosts(("esx3",)), set()),
        ({"vsan": {"resync_bytes": 1}}, LeavingHosts(), {"vsan_resync"}),
        ({"vsan": {"resync_bytes": None}}, LeavingHosts(), set()),
        ({"out_of_service": [OUT]}, LeavingHosts(), {"out_of_service"}),
        ({"out_of_service": [OUT]}, LeavingHosts(("esx1",)), {"out_of_service", "max_out_of_service"}),
        ({"out_of_service": [OUT]}, LeavingHosts(("esx2",)), {"taken_out"}),
        ({"out_of_service": [{**OUT, "ours": True}], "hosts": LOST}, LeavingHosts(("esx1",), 2), {"not_responding"}),
        ({"out_of_service": [{**OUT, "ours": True}], "hosts": LOST}, LeavingHosts(("esx2",)), set()),
        ({"out_of_service": [{**OUT, "ours": True}]}, LeavingHosts(("esx1",), 2), set()),
        ({"out_of_service": [{**OUT, "ours": True}], "ha": HA}, LeavingHosts(("esx1",), 2), {"ha_capacity"}),
        ({"gpu_slots": [slots((1, 0), (1, 0))]}, LeavingHosts(("esx1",)), {"gpu_slots"}),
        ({"gpu_slots": [slots((1, 0), (0, 1))]}, LeavingHosts(("esx1",)), set()),
        ({"gpu_slots": [slots((1, 1), (1, 0))]}, LeavingHosts(("esx1",)), {"gpu_slots"}),
        ({"tasks": [TASK]}, LeavingHosts(("esx1",)), {"running_task"}),
        ({"remediations": [{"user": "ann", "hosts": ["esx3"], "error": ""}]}, LeavingHosts(("esx1",)), {"remediation"}),
        ({"remediations": [{"user": "ann", "hosts": [], "error": ""}]}, LeavingHosts(()), {"remediation"}),
        ({"remediations": [{"user": "", "hosts": [], "error": "no answer"}]}, LeavingHosts(()), {"remediation"}),
        (
            {
                "remediations": [{"user": "us", "hosts": ["esx3"], "error": ""}],
                "out_of_service": [{"host": "esx3", "why": "maintenance", "ours": True, "by": None}],
            },
            LeavingHosts(()),
            set(),
        ),
        ({"tasks": [{**TASK, "ours": True}]}, LeavingHosts(("esx1",)), set()),
        ({"tasks": [TASK]}, LeavingHosts(("esx2",)), set()),
    ],
)
def test_each_rule_fires_under_its_condition(facts: dict[str, Any], leaving: LeavingHosts, rules: set[str]) -> None:
    found = stop_rules.stops(cluster(**facts), leaving)
    assert {stop["rule"] for stop in found} == rules
    assert all(stop["severity"] == "stop" and stop["text"].startswith(stop["object"]) for stop in found)
