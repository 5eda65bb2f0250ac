"""The rules for one move: each rule separately, and a move that no rule forbids."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.moves.checks.move_checks import MoveFacts, findings
from plugins.module_utils.moves.checks.stun_estimate import Estimate

GOOD: MoveFacts = {
    "worker": "w1",
    "target": "esx05",
    "profiles": ["grid_t4-16c"],
    "groups": [],
    "groups_offered": [],
    "fixed": [],
    "classes": ["nvidia-mover"],
    "target_classes": {"nvidia-mover": True},
    "class_slots_free": True,
    "flags": [],
    "hot_migrate": True,
    "in_service": True,
    "alarms": [],
    "offered": ["grid_t4-16c"],
    "slots_free": True,
    "holders": [],
    "free_mb": 65536,
    "memory_reserved_mb": 16384,
    "free_mhz": 48000,
    "cpu_reserved_mhz": 16000,
    "datastores_missing": [],
    "networks_missing": [],
    "rdma": True,
    "roce_v1": False,
    "target_version": "9.1.0",
    "pvrdma": True,
    "encryption": "opportunistic",
    "encrypted": False,
    "providers_missing": [],
    "key_pending": True,
    "no_encrypted_moves": ["esx05"],
    "pool_lost": "",
    "snapshot": False,
    "tasks": [],
    "check_errors": [],
    "check_warnings": [],
    "stun": Estimate(22.0, "the server's estimate at 10000 Mb/s"),
    "stun_budget_s": 60.0,
    "switchover_s": 100.0,
}


KEYED: dict[str, Any] = {"encrypted": True, "key_pending": False, "no_encrypted_moves": []}


def findings_of(**changed: Any) -> list[tuple[str, str]]:
    return [(one.severity, one.rule) for one in findings({**GOOD, **changed}) if one.severity != "note"]


def test_good_move_violates_no_rule() -> None:
    assert GOOD.keys() == MoveFacts.__annotations__.keys(), "rules read other facts"
    found = findings(GOOD)
    assert [(one.severity, one.rule) for one in found] == [("note", "stun"), ("note", "ecc")]
    assert "about 22 s" in found[0].text


@pytest.mark.parametrize(
    ("changed", "rule", "words"),
    [
        ({"fixed": ["10de:20b0"]}, "passthrough", "not applicable"),
        ({"target_classes": {"other": True}}, "device_class", "has no device of class nvidia-mover; it has other"),
        ({"target_classes": {"nvidia-mover": False}}, "device_class", "reports no vMotion support"),
        ({"class_slots_free": False}, "device_class", "esx05 has no free device of class nvidia-mover"),
        (
            {"groups": ["Nvidia:2@grid_a100-40c%NVLink"], "groups_offered": ["Nvidia:4@grid_a100-40c%NVLink"]},
            "device_group",
            "esx05 does not offer its linked vGPUs, the device group Nvidia:2@grid_a100-40c%NVLink; it offers",
        ),
        ({"pool_lost": "team-a"}, "resource_pool", "would leave its resource pool team-a, which the cluster of esx05"),
        ({"hot_migrate": False}, "hot_migrate", "vgpu.hotmigrate.enabled"),
        (
            {"encryption": "required"},
            "encrypted_moves",
            "esx05 does not support encrypted vMotion, and its vmotion_enc",
        ),
        (
            {**KEYED, "no_encrypted_moves": ["esx01", "esx05"]},
            "encrypted_moves",
            "esx01, esx05 do not support encrypted vMotion, and it",
        ),
        ({**KEYED, "key_pending": True}, "host_key", "esx05 gives up its key at the next boot"),
        ({**KEYED, "providers_missing": ["native"]}, "key_provider", "the key provider native, which vCenter does not"),
        ({"flags": ["pciPassthru0.cfg.enable_uvm"]}, "gpu_flags", "pciPassthru0.cfg.enable_uvm"),
        ({"in_service": False}, "target", "esx05"),
        ({"alarms": ["Host temperature"]}, "alarm", "Host temperature"),
        ({"offered": ["grid_t4-8c"], "slots_free": False}, "profile", "it offers grid_t4-8c"),
        ({"slots_free": False, "holders": ["w2 (grid_t4-16c)"]}, "slots", "w2 (grid_t4-16c)"),
        ({"free_mb": 1024}, "memory", "16384 MB"),
        ({"free_mhz": 15999}, "cpu", "it needs 16000 MHz"),
        ({"datastores_missing": ["local"]}, "datastore", "local"),
        ({"networks_missing": ["rdma-vm"]}, "network", "rdma-vm"),
        ({"pvrdma": False}, "pvrdma", "tagged for PVRDMA"),
        ({"roce_v1": True}, "roce_v1", "esx05 runs ESX 9.1.0, and 9.0 removed RoCE version 1"),
        ({"snapshot": True}, "snapshot", "remove it"),
        ({"tasks": ["the task createSnapshot of backup"]}, "task", "backup"),
        ({"check_errors": ["No."]}, "check", "vCenter would refuse the move: No."),
        ({"stun": Estimate(120.0, "a table")}, "stun", "over 100 s, the limit of vSphere"),
        ({"stun": Estimate(61.0, "a table")}, "stun", "over 60 s, the limit of the job"),
        (
            {"stun": Estimate(60.0, "a table", at_least=True)},
            "stun",
            "for about 60 s or longer according to a table: over 60 s",
        ),
    ],
)
def test_each_rule_alone_stops_a_move(changed: dict[str, Any], rule: str, words: str) -> None:
    assert findings_of(**changed) == [("stop", rule)]
    (one,) = [one for one in findings({**GOOD, **changed}) if one.severity == "stop"]
    assert words in one.text
    assert one.object == "w1"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"check_warnings": ["Slow."]}, [("warn", "check")]),
        ({"stun": Estimate(None, "nothing tells")}, [("warn", "stun")]),
        ({"stun": Estimate(59.0, "a table", at_least=True)}, [("warn", "stun")]),
        ({"profiles": [], "hot_migrate": False, "offered": [], "stun": Estimate(900.0, "a table")}, []),
        ({"rdma": False, "pvrdma": False}, []),
        ({"stun": Estimate(61.0, "a table"), "stun_budget_s": None}, []),
    ],
)
def test_distinguishes_warnings_from_irrelevant_answers(
    changed: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert findings_of(**changed) == expected
