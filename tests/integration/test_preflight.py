"""playbooks/preflight.yml against simulated data centres, good and bad: what it finds, its exit code, and no write."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from lab.simulator import DATACENTRES, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Outcome, Start
from tests.integration.releases import NEWEST

pytestmark = pytest.mark.release(NEWEST)

PLAYBOOK = "playbooks/preflight.yml"
PROFILE = {
    "vibs": [
        {
            "name": "NVD-AIE_ESXi_8.0.0_Driver",
            "version": "550.90.05",
            "source": "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip",
        }
    ],
    "graphics": {"type": "shared_direct"},
    "roce": {"priority": 3},
    "pvrdma": {"vmk": "vmk1"},
}
HOSTS = """
      - {name: esx01.lab}
      - {name: esx02.lab, hardware: no_gpu}
      - {name: esx03.lab, hardware: no_rdma, vmkernel: [{device: vmk1, portgroup: Management Network}]}
      - {name: esx04.lab, rdma_users: [nvme]}
      - {name: esx05.lab}
      - {name: esx06.lab}
      - {name: esx07.lab, passthrough: [all]}
      - {name: esx08.lab}
      - {name: esx09.lab}
      - {name: esx10.lab, uplinks: {rdma: [vmnic1, vmnic2]}}
"""
VMS = """
foreign: [stuck, light]
vms:
  - {name: stuck, host: esx06.lab, powered_on: true, owner: ann, passthrough: gpu}
  - {name: light, host: esx01.lab, powered_on: true}
"""
STOPS = {
    ("gpu", "esx02.lab"),
    ("rdma", "esx03.lab"),
    ("shared_nic", "esx04.lab"),
    ("disconnected", "esx05.lab"),
    ("emptying", "esx06.lab"),
    ("emptying", "esx01.lab"),
    ("passthrough", "esx07.lab"),
    ("host_profile", "esx08.lab"),
    ("red_alarm", "esx09.lab"),
    ("plan", "esx10.lab"),
    ("vsan_resync", "gpu"),
    ("configuration_profile", "gpu"),
    ("image_managed", "gpu"),
}


def preflight(ansible: Ansible, *options: str, **variables: Any) -> tuple[Outcome, list[dict[str, Any]]]:
    """Run it, and read its report."""
    report = ansible.folder / "report.json"
    given = {"esxi_host_profile": PROFILE, "preflight_report": str(report), **variables}
    outcome = ansible.playbook(PLAYBOOK, "-i", "inventories/lab", *options, "-e", json.dumps(given))
    return outcome, json.loads(report.read_text())["findings"] if report.exists() else []


def counts(outcome: Outcome) -> dict[str, int]:
    """Return the numbers of the last line by their words; they are those of the lines before it."""
    words = ("stop", "warn", "note", "accepted")
    (last,) = re.findall(r"- (\d+ stop, \d+ warn, \d+ note(?:, \d+ accepted)?)$", outcome.out, re.MULTILINE)
    result = {word: int(number) for number, word in (entry.split() for entry in last.split(", "))}
    shown = {word: len(re.findall(rf"^ *- ['\"]?{word} +\S", outcome.out, re.MULTILINE)) for word in words}
    assert result == {word: number for word, number in shown.items() if word in result}
    return result


def stops(found: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["rule"], one["object"]) for one in found if one["severity"] == "stop"}


@pytest.fixture
def bad(start: Start) -> Simulator:
    """A data centre in which every host but one has its own obstacle."""
    text = (DATACENTRES / "ready.yml").read_text().partition("\nvms:")[0]
    line = next(line for line in text.splitlines() if '"esx%02d.lab"' in line)
    vcenter = start(text=text.replace(line, HOSTS.strip("\n")) + VMS)
    vcenter.set_host("esx05.lab", connection="notResponding")
    vcenter.set_host("esx08.lab", host_profile="gold")
    vcenter.set_host("esx09.lab", alarm="red")
    vcenter.set_cluster("gpu", vsan_resync_bytes=2**30, config_profile=True, image_managed=True)
    return vcenter


@pytest.mark.every_release
def test_new_datacenter_passes_preflight_also_in_check_mode(vcenter: Simulator, ansible: Ansible) -> None:
    outcome, found = preflight(ansible, "--check")
    assert outcome.rc == 0, outcome.out
    assert stops(found) == set()
    assert {"vmotion", "reboots", "guest_driver"} <= {one["rule"] for one in found}
    assert counts(outcome)["stop"] == 0
    assert vcenter.writes() == []


def test_finds_and_reports_every_obstacle_without_a_change(bad: Simulator, ansible_for: AnsibleFor) -> None:
    outcome, found = preflight(ansible_for(bad))
    assert outcome.rc == 2, outcome.out
    assert stops(found) == STOPS
    severities = [one["severity"] for one in found]
    assert severities == sorted(severities, key=["stop", "warn", "note"].index)
    (stuck,) = [one["text"] for one in found if one["object"] == "esx06.lab" and one["rule"] == "emptying"]
    assert "stuck" in stuck and "ann" in stuck and "power_off" in stuck
    assert counts(outcome)["stop"] > 0 and "accepted" not in counts(outcome)
    assert bad.writes() == []


def test_accepted_stops_do_not_fail_preflight(bad: Simulator, ansible_for: AnsibleFor) -> None:
    rules = sorted({rule for rule, _object in STOPS if rule != "red_alarm"})
    outcome, found = preflight(ansible_for(bad), preflight_accept=[*rules, "red_alarm:esx09.lab"])
    assert outcome.rc == 0, outcome.out
    assert stops(found) == STOPS
    accepted = counts(outcome)
    assert accepted["stop"] == 0 and accepted["accepted"] > 0


def test_reports_a_profile_mistake_as_a_finding(vcenter: Simulator, ansible: Ansible) -> None:
    outcome, found = preflight(ansible, esxi_host_profile={"graphic": {}})
    assert outcome.rc == 2, outcome.out
    assert stops(found) == {("plan", "gpu")}
    assert "graphic" in found[0]["text"]
    assert vcenter.writes() == []
