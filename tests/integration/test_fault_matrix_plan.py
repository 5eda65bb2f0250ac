"""The fault matrix of host preparation: what is refused while it is planned, before the lock and before any write."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.faults import DRIVER, PROFILE, Bench, last_sentence
from tests.integration.rolling import datacentre, run

HOSTS = datacentre(
    "name: esx01.lab",
    "name: esx02.lab, hardware: no_gpu",
    "name: esx03.lab, rdma_users: [nvme]",
    "name: esx04.lab, passthrough: [all]",
)
IMPOSSIBLE: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "VIB while a GPU is in passthrough": ("esx04.lab", {"vibs": [DRIVER]}, ("is in passthrough", "esxi_passthrough")),
    "graphics without a GPU": (
        "esx02.lab",
        {"graphics": {"type": "shared_direct"}},
        ("the host has no NVIDIA GPU", "leave this host out"),
    ),
    "shared NIC": (
        "esx03.lab",
        {"roce": {"priority": 3}},
        ("NVMe over RDMA", "vmhba64", "acknowledge_shared_nic: true"),
    ),
}
CONNECTIONS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "wrong password": (
        {"VMWARE_PASSWORD": "a-wrong-secret"},
        ("could not log in as", "InvalidLogin", "check username and password"),
    ),
    "untrusted certificate": ({"VMWARE_CA_PATH": ""}, ("could not trust its certificate", "ca_path")),
    "wrong fingerprint": (
        {"VMWARE_TLS_FINGERPRINT": "00:" * 31 + "00"},
        ("could not trust its certificate", "SHA-256 is", "set tls_fingerprint again"),
    ),
}


@pytest.mark.parametrize("desired", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_refuses_an_impossible_setting_before_any_write(
    start: Start, ansible_for: AnsibleFor, desired: tuple[str, dict[str, Any], tuple[str, ...]]
) -> None:
    host, profile, reported = desired
    vcenter = start(text=HOSTS)
    ansible = ansible_for(vcenter)
    for check in (True, False):
        refused = ansible.module("esxi_profile", check=check, cluster="gpu", host_profiles={host: profile})
        one_sentence(refused.msg, host, *reported)
    assert vcenter.writes() == []


@pytest.mark.parametrize("connection", CONNECTIONS.values(), ids=CONNECTIONS)
def test_playbook_ends_before_the_lock_without_connection(
    start: Start, ansible_for: AnsibleFor, connection: tuple[dict[str, str], tuple[str, ...]]
) -> None:
    environment, reported = connection
    vcenter = start(text=HOSTS)
    ended = run(ansible_for(vcenter, **environment), esxi_host_profile=PROFILE)
    # The dynamic inventory fails first: 4 is Ansible's code for it.
    assert ended.rc == 4
    one_sentence(ended.out, *reported)
    assert "a-wrong-secret" not in ended.out
    assert vcenter.writes() == []


@pytest.mark.datacentre(text=HOSTS)
def test_refused_plan_ends_the_playbook_before_the_lock(vcenter: Simulator, ansible: Ansible) -> None:
    ended = run(ansible, esxi_host_profile={**PROFILE, "pvrdma": {"vmk": "vmk9"}})
    assert ended.rc == 2
    one_sentence(
        last_sentence(ended.out), "esx01.lab, esx02.lab, esx03.lab, esx04.lab", "there is no vmkernel adapter vmk9"
    )
    assert Bench(vcenter, ansible).lock() == "free"
    assert not (ansible.folder / "evidence").exists()
    assert vcenter.writes() == []


def one_sentence(message: str, *words: str) -> None:
    """It names the object, the attempt, the answer and the remedy, once."""
    assert message.count("could not") == 1, message
    for word in words:
        assert word in message, message
