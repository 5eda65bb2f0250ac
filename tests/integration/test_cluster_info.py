"""cluster_info against the simulated data centre: each fact that stops a change is seen, and reading is cheap."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.test_power import workers

GPU = {"cluster": "gpu"}
ONE = {**GPU, "leaving": ["esx01.lab"]}


def rules(ansible: Ansible, **options: Any) -> dict[str, str]:
    """The stop rules that fire, with their sentences."""
    outcome = ansible.module("cluster_info", **{**ONE, **options})
    assert outcome.rc == 0, outcome.out
    return {stop["rule"]: stop["text"] for stop in outcome.result["stops"]}


def test_healthy_cluster_lets_one_host_leave_without_writes(vcenter: Simulator, ansible: Ansible) -> None:
    outcome = ansible.module("cluster_info", gather=["clocks", "occupied", "vms"], **ONE)
    assert outcome.rc == 0 and outcome.result["stops"] == [], outcome.out
    assert vcenter.writes() == []
    cluster = outcome.result["cluster"]
    assert cluster["ha"]["failover_hosts"] == 1 and cluster["max_out_of_service"]["allowed"] == 1
    assert cluster["drs"]["behaviour"] == "partiallyAutomated" and cluster["options"] == {
        "vgpu.hotmigrate.enabled": False
    }
    assert [one["running"] for one in cluster["clocks"]] == [["ntpd"]] * 5
    assert all(abs(one["offset_seconds"]) <= 1 for one in cluster["clocks"])
    assert {one["object"] for one in cluster["licences"]} >= {"esx01.lab", "esx05.lab"}
    assert cluster["lock"]["held"] is False and cluster["vsan"] == {"enabled": False, "resync_bytes": 0}


def test_lists_hosts_with_running_machines_as_occupied(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = workers(start, hosts=3, count=1)

    cluster = ansible_for(vcenter).module("cluster_info", gather=["occupied", "vms"], **GPU).result["cluster"]

    assert cluster["occupied"] == sorted({vm["host"] for vm in cluster["vms"]}) != []
    assert len(cluster["occupied"]) < 3


def test_number_of_calls_does_not_grow_with_hosts(start: Start, ansible_for: AnsibleFor) -> None:
    calls = []
    for hosts in (2, 24):
        vcenter = workers(start, hosts=hosts, count=1)
        assert ansible_for(vcenter).module("cluster_info", **GPU).rc == 0
        calls.append(sum(vcenter.calls().values()))
    assert calls[0] == calls[1] <= 40


def test_red_alarm_stops_unless_its_host_leaves(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_host("esx02.lab", alarm="red")
    assert "esx02.lab: the alarm" in rules(ansible)["red_alarm"]
    assert "red_alarm" not in rules(ansible, leaving=["esx02.lab"])
    vcenter.set_host("esx02.lab", alarm="yellow")
    assert "red_alarm" not in rules(ansible)


def test_vsan_resync_stops(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_cluster("gpu", vsan_resync_bytes=3 * 2**30)
    assert "3.0 GiB are left" in rules(ansible)["vsan_resync"]
    vcenter.set_cluster("gpu", vsan_resync_bytes=0)
    assert "vsan_resync" not in rules(ansible)


@pytest.mark.parametrize(
    ("state", "rule", "reason"),
    [
        ({"maintenance": True}, "out_of_service", "it is out of service (maintenance)"),
        ({"quarantine": True}, "out_of_service", "it is out of service (quarantine)"),
        ({"connection": "notResponding"}, "not_responding", "it does not respond (notResponding)"),
    ],
)
def test_host_taken_out_by_another_user_stops(
    vcenter: Simulator, ansible: Ansible, state: dict[str, Any], rule: str, reason: str
) -> None:
    vcenter.set_host("esx03.lab", **state)
    found = rules(ansible)
    assert found[rule].startswith(f"esx03.lab: {reason}") and set(found) == {rule, "max_out_of_service", "ha_capacity"}
    assert "2 hosts would be out of service (esx01.lab, esx03.lab)" in found["max_out_of_service"]
    assert "keeps 1 host free" in found["ha_capacity"]


def test_rollout_host_counts_only_towards_the_limit(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("esxi_power", hosts=["esx02.lab"], state="maintenance", rollout=True).changed
    found = rules(ansible)
    assert "out_of_service" not in found and "max_out_of_service" in found
    read = ansible.module("cluster_info", **GPU).result["cluster"]["out_of_service"]
    assert [(one["host"], one["ours"], bool(one["by"])) for one in read] == [("esx02.lab", True, True)]
    vcenter.set_cluster("gpu", ha={"enabled": True, "admission_control": True, "failover_level": 2})
    assert rules(ansible, max_out_of_service=2) == {}


def test_too_few_free_vgpu_places_stop(start: Start, ansible_for: AnsibleFor) -> None:
    full = ansible_for(workers(start, hosts=3, count=3))
    assert "too few free places for the grid_t4-16c of esx01.lab" in rules(full)["gpu_slots"]
    roomy = ansible_for(workers(start, hosts=3, count=2))
    assert "gpu_slots" not in rules(roomy)
    cluster = roomy.module("cluster_info", gather=["vms"], **GPU).result["cluster"]
    (whole,) = [one for one in cluster["gpu_slots"] if one["profile"] == "grid_t4-16c"]
    assert (whole["used"], whole["free"]) == (2, 1)
    assert [one["host"] for one in whole["hosts"] if one["free"]] == ["esx03.lab"]
    assert cluster["max_out_of_service"]["allowed"] == 1
    assert [(vm["vm"], vm["host"], vm["owner"]) for vm in cluster["vms"]] == [
        ("worker01", "esx01.lab", "team ml"),
        ("worker02", "esx02.lab", "team ml"),
    ]
