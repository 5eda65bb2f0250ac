"""The plan of a cluster as lines and as a list of hosts to work on."""

from __future__ import annotations

import pytest

from plugins.module_utils.maintenance.rolling_change import lines, not_in_force, refusals, to_do, unknown_hosts

HOSTS = [
    {"host": "esx1", "changed": False, "needs": [], "reboots": 0, "why": []},
    {"host": "esx2", "changed": True, "needs": ["reboot"], "reboots": 1, "why": ["pfctx is taken only at boot"]},
    {"host": "esx3", "changed": True, "needs": [], "reboots": 0, "why": []},
    {"host": "esx4", "changed": False, "needs": ["reboot"], "reboots": 2, "why": []},
    {"host": "esx5", "failed": True, "msg": "esx5: could not read it: notResponding"},
]
ALARM = {"severity": "stop", "rule": "red_alarm", "object": "esx2", "text": "esx2: the alarm is red."}
RESYNC = {"severity": "stop", "rule": "vsan_resync", "object": "gpu", "text": "gpu: vSAN is resyncing."}


def test_hosts_with_the_same_plan_share_their_lines() -> None:
    assert lines([*HOSTS, {**HOSTS[1], "host": "esx6"}]) == [
        "esx1: in force, nothing to do",
        "esx2, esx6: changes out of service, 1 reboot",
        "    because pfctx is taken only at boot",
        "esx3: changes in service, no reboot",
        "esx4: changes out of service, 2 reboots",
        "esx5: could not read it: notResponding",
    ]


def test_includes_hosts_that_only_need_a_reboot() -> None:
    assert [(entry["host"], entry["leaves_service"]) for entry in to_do(HOSTS)] == [
        ("esx2", True),
        ("esx3", False),
        ("esx4", True),
    ]


def test_changes_the_canary_alone_and_then_first() -> None:
    assert [entry["host"] for entry in to_do(HOSTS, "esx4")] == ["esx4"]
    assert [entry["host"] for entry in to_do(HOSTS, "esx4", True)] == ["esx4", "esx2", "esx3"]
    assert to_do(HOSTS, "esx1") == []


def test_returns_an_unchanged_host_that_a_run_left() -> None:
    left = [{"host": "esx1", "changed": True}, {"host": "esx2", "changed": False}]
    assert to_do(HOSTS[:1], left=left) == [{"host": "esx1", "reboots": 0, "leaves_service": True}]
    assert lines(HOSTS[:1], left) == [
        "esx1: changes out of service, no reboot",
        "    because an earlier run of this collection left it in maintenance mode",
    ]
    assert to_do(HOSTS[:1], left=[{"host": "esx1", "changed": False}]) == []


TAKEN = [{"host": "esx2", "changed": False, "state": {"maintenance": True, "ours": False}}]


def test_does_not_change_hosts_that_others_took_out() -> None:
    assert [entry["host"] for entry in to_do(HOSTS, left=TAKEN)] == ["esx3", "esx4"]
    assert to_do(HOSTS, "esx2", left=TAKEN) == [], "not as the canary either"
    assert lines(HOSTS[1:2], TAKEN) == [
        "esx2: differs, but another user put it into maintenance mode: neither changed nor rebooted"
    ]
    assert lines(HOSTS[:1], [{**TAKEN[0], "host": "esx1"}]) == ["esx1: in force, nothing to do"]


@pytest.mark.parametrize(
    ("accepted", "refused"), [((), 1), (("red_alarm",), 1), (("out_of_service",), 0), (("out_of_service:esx2",), 0)]
)
def test_rollout_refuses_a_differing_host_of_another_user(accepted: tuple[str, ...], refused: int) -> None:
    errors = refusals(HOSTS, TAKEN, accepted)
    assert len(errors) == refused
    assert all(error.startswith("esx2: could not change host profile: another user put it") for error in errors)
    assert refusals(HOSTS[:1], [{**TAKEN[0], "host": "esx1"}]) == [], "a host without a difference needs no change"


def test_changes_out_of_service_hosts_before_the_canary() -> None:
    left = [{"host": "esx4", "changed": True}]
    assert [entry["host"] for entry in to_do(HOSTS, left=left)] == ["esx4", "esx2", "esx3"]
    assert [entry["host"] for entry in to_do(HOSTS, "esx3", True, left)] == ["esx4", "esx3", "esx2"]


def test_reports_hosts_without_a_setting_in_force() -> None:
    (changed, _other, owing) = not_in_force(HOSTS[:4])
    assert changed.startswith("esx2: could not activate its profile") and "pfctx is taken only at boot" in changed
    assert owing.startswith("esx4: ") and "it differs; check the host's log" in owing


@pytest.mark.parametrize(
    ("canary", "profiles", "sentences"),
    [
        ("", [], []),
        ("esx1", ["esx1"], []),
        ("esx3", [], ["there is no canary esx3: the hosts of this run are esx1, esx2"]),
        ("", ["esx1", "esx9"], ["esxi_host_profiles has a profile for esx9: the hosts of this run are esx1, esx2"]),
    ],
)
def test_reports_each_unknown_host(canary: str, profiles: list[str], sentences: list[str]) -> None:
    assert unknown_hosts(["esx2", "esx1"], canary, profiles) == sentences
