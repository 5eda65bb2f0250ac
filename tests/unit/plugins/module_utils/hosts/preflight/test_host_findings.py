"""Defects of one host for its profile: each gives the one finding that names it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.hosts.preflight.host_findings import ExpectedHost, findings
from tests.unit.plugins.module_utils.hosts.preflight.preflight_data import GPU, PROFILE, device, gpu, host

PASSTHROUGH = {"passthrough": {"enabled": True}}
LOST = {"reachable": False, "connection": "notResponding", "failed": True, "msg": "esx1: could not read it"}
SHARED = [{"kind": "vSAN", "name": "vmk3", "uplink": "vmnic2"}]
TWO_PORTS = [device(), device(device="vmrdma1", uplink="vmnic3", state="down")]
# changed entry, profile, severity, rule, words of the sentence
DEFECTS: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    (LOST, PROFILE, "stop", "disconnected", "notResponding"),
    ({"failed": True, "msg": "esx1: could not read it: no"}, PROFILE, "stop", "unreadable", "could not read it: no"),
    ({"reboot_owed": True, "reboot_why": ["VIB N 1 waits"]}, PROFILE, "note", "reboot_owed", "VIB N 1 waits"),
    ({"version": "8.0.2"}, {"graphics": {"vgpu_mode": "mixed_size"}}, "stop", "version", "8.0.3"),
    ({"gpus": []}, PROFILE, "stop", "gpu", "no NVIDIA GPU"),
    ({"gpus": []}, PASSTHROUGH, "stop", "gpu", "no NVIDIA GPU"),
    ({"gpus": [gpu(name="NVIDIA L4")]}, PROFILE, "stop", "gpu", "NVIDIA L4"),
    ({"gpus": [gpu(passthrough="on")]}, PROFILE, "stop", "passthrough", GPU),
    ({"gpus": [gpu(passthrough="on")]}, {**PROFILE, "passthrough": {"enabled": False}}, "note", "passthrough", "twice"),
    ({"gpus": [gpu(mig=True)]}, PROFILE, "note", "mig", "MIG"),
    ({"rdma_devices": []}, PROFILE, "stop", "rdma", "no RDMA device"),
    ({"rdma_devices": [device(state="down")]}, PROFILE, "stop", "rdma", "vmrdma0 is down"),
    ({"uplinks": [{"device": "vmnic2", "link": False}]}, PROFILE, "stop", "rdma", "link of vmnic2 is down"),
    ({"rdma_devices": TWO_PORTS}, PROFILE, "warn", "rdma", "vmrdma1"),
    ({"rdma_users": SHARED}, PROFILE, "stop", "shared_nic", "acknowledge_shared_nic"),
    ({"rdma_users": SHARED}, {"roce": {"acknowledge_shared_nic": True}}, "warn", "shared_nic", "vSAN (vmk3)"),
    ({"host_profile": "gold"}, PROFILE, "stop", "host_profile", "gold"),
]


def triples(profile: dict[str, Any], **changed: Any) -> list[tuple[str, str, str]]:
    desired = ExpectedHost(profile, gpu_models=("t4",))
    return [(finding.severity, finding.rule, finding.text) for finding in findings(host(**changed), desired)]


@pytest.mark.parametrize(("changed", "profile", "severity", "rule", "words"), DEFECTS)
def test_each_defect_gives_one_finding(
    changed: dict[str, Any], profile: dict[str, Any], severity: str, rule: str, words: str
) -> None:
    ((its_severity, its_rule, text),) = triples(profile, **changed)
    assert (its_severity, its_rule) == (severity, rule)
    assert words in text
