"""Connecting: certificates, fingerprints, passwords, names; each failure is one sentence and no secret."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import PASSWORD, Simulator
from tests.integration import fabrics
from tests.integration.ansible import Ansible, AnsibleFor, Outcome

DESIRED: dict[str, Any] = {"name": "nmlx5_core", "options": {"max_vfs": 8}}


def ask(ansible: Ansible, **options: Any) -> Outcome:
    chosen = {} if "hosts" in options else {"cluster": "gpu"}
    return ansible.module("esxi_kernel_module", check=True, **DESIRED, **chosen, **options)


def test_refuses_an_unknown_certificate_authority(vcenter: Simulator, ansible_for: AnsibleFor) -> None:
    refused = ask(ansible_for(vcenter, VMWARE_CA_PATH=""))
    assert refused.rc == 1
    assert "could not trust its certificate" in refused.msg
    assert "name its authority in ca_path" in refused.msg


def test_skips_certificate_checks_only_on_request(vcenter: Simulator, ansible_for: AnsibleFor) -> None:
    assert ask(ansible_for(vcenter, VMWARE_CA_PATH=""), validate_certs=False).rc == 0


def test_matching_fingerprint_replaces_a_certificate_authority(vcenter: Simulator, ansible_for: AnsibleFor) -> None:
    pinned = ansible_for(vcenter, VMWARE_CA_PATH="", VMWARE_TLS_FINGERPRINT=vcenter.facts["fingerprint"])
    assert ask(pinned).rc == 0


@pytest.mark.parametrize("validate", [True, False])
def test_refuses_a_wrong_fingerprint_with_any_other_option(ansible: Ansible, *, validate: bool) -> None:
    refused = ask(ansible, tls_fingerprint="00:" * 31 + "00", validate_certs=validate)
    assert refused.rc == 1
    assert "its certificate's SHA-256 is" in refused.msg


def test_refuses_a_malformed_fingerprint(ansible: Ansible) -> None:
    refused = ask(ansible, tls_fingerprint="AB:CD")
    assert "'AB:CD' is not a SHA-256 of 64 hexadecimal digits" in refused.msg


def test_reports_a_wrong_password_without_showing_it(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ask(ansible, password="a-wrong-secret")
    assert refused.rc == 1
    assert "InvalidLogin" in refused.msg and "check username and password" in refused.msg
    # Ansible itself shows options of the command line with an error, so the password comes from the environment.
    given = Ansible({**vcenter.environment, "VMWARE_PASSWORD": "a-wrong-secret"}, ansible.folder)
    shown = given.adhoc("cluster_info", cluster="gpu")
    assert shown.rc != 0 and "InvalidLogin" in shown.out
    assert "a-wrong-secret" not in refused.out + shown.out
    assert vcenter.writes() == []


@pytest.mark.parametrize(
    ("release", "remedy"),
    [
        ("8.0 U3", "check username and password"),
        ("9.1", "vCenter 9.1.0 requires user@domain, such as administrator@vsphere.local: write the domain too"),
    ],
    indirect=["release"],
)
def test_refuses_a_user_name_without_a_domain(ansible: Ansible, remedy: str) -> None:
    refused = ask(ansible, username="administrator")
    assert refused.rc == 1 and "InvalidLogin" in refused.msg and remedy in refused.msg


def test_password_never_appears_in_ansible_output(ansible: Ansible) -> None:
    shown = ansible.adhoc("esxi_kernel_module", check=True, cluster="gpu", **DESIRED)
    assert shown.rc == 0, shown.out
    assert PASSWORD not in shown.out


def test_playbook_prefers_connection_variables_to_the_environment(
    vcenter: Simulator, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    unknown = dict.fromkeys(("VMWARE_HOST", "VMWARE_USER", "VMWARE_PASSWORD", "VMWARE_CA_PATH"), "nobody")
    given = {f"vsphere_{option}": value for option, value in vcenter.connection.items()}
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"clusters": {"hosts": {"gpu": {**local, **given}}}}))
    connected = ansible_for(vcenter, **unknown).playbook("playbooks/account.yml", "-i", str(inventory), "-vvv")
    assert connected.rc == 0, connected.out
    assert "changed=1" in connected.out and PASSWORD not in connected.out


def test_inventory_works_only_with_its_vcenter(vcenter: Simulator, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    ansible, inventory = ansible_for(vcenter), tmp_path / "hosts.yml"
    taken = ansible.module("cluster_lock", cluster="gpu", run="one")
    (warning,) = taken.result["warnings"]
    uuid = str(warning).partition("vcenter_uuid: ")[2].split()[0]
    assert ansible.module("cluster_lock", cluster="gpu", run="one", state="free", vcenter_uuid=uuid).changed
    assert "warnings" not in ansible.module("cluster_lock", cluster="gpu", run="one", vcenter_uuid=uuid).result
    discovered = ansible.module("site", gather="discovery").result["inventory"]
    assert uuid in discovered
    inventory.write_text(discovered.replace(uuid, "0f2c7d36-0000-0000-0000-000000000000"))
    vcenter.clear()
    refused = ansible.playbook("playbooks/account.yml", "-i", str(inventory))
    assert refused.rc != 0 and vcenter.writes() == [], refused.out
    text = " ".join(refused.out.split())
    assert f"the instance UUID 0f2c7d36-0000-0000-0000-000000000000 (vcenter_uuid), and this one has {uuid}" in text


def test_playbook_uses_the_environment_for_missing_variables(
    vcenter: Simulator, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    inventory = tmp_path / "inventory.json"
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    inventory.write_text(json.dumps({"clusters": {"hosts": {"gpu": {**local, "vsphere_timeout": 30}}}}))
    ansible = ansible_for(vcenter, VMWARE_TIMEOUT="nonsense", VMWARE_PROXY="", VMWARE_TLS_FINGERPRINT="")
    connected = ansible.playbook("playbooks/account.yml", "-i", str(inventory), "-vvv")
    assert connected.rc == 0, connected.out
    assert "changed=1" in connected.out and PASSWORD not in connected.out


def test_reports_a_missing_server_as_unreachable(ansible: Ansible) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused = ask(ansible, port=unused.getsockname()[1])
    assert refused.rc == 1
    assert "could not connect" in refused.msg and "check hostname, port and proxy" in refused.msg


def test_connection_fails_if_the_proxy_is_unreachable(ansible: Ansible) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refused = ask(ansible, proxy=f"127.0.0.1:{unused.getsockname()[1]}")
    assert refused.rc == 1
    assert "could not connect" in refused.msg


def test_refuses_and_hides_credentials_in_the_proxy_address(ansible: Ansible) -> None:
    # By the environment: the command that asked is on the screen anyway.
    ansible.environment["VMWARE_PROXY"] = "http://me:hush-hush@proxy.lab:3128"
    refused = ansible.adhoc("cluster_info", cluster="gpu")
    assert refused.rc != 0 and "proxy: could not use it: it contains an account" in refused.msg
    assert "hush-hush" not in refused.out and "hush-hush" not in str(refused.result)


def test_refuses_a_host_named_twice(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("esxi_kernel_module", hosts=["esx01.lab", "esx01.lab"], **DESIRED)
    assert "it is named twice in this call" in refused.msg
    assert vcenter.writes() == []


def open_sessions(vcenter: Simulator) -> int:
    """How many sessions the server lists beside the one that asks."""
    with fabrics.opened(vcenter) as one:
        return len(one.content.sessionManager.sessionList) - 1


FAILING: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a refused wish": ("esxi_kernel_module", {"hosts": ["esx99.lab"], **DESIRED}, {}),
    "a fault": ("esxi_kernel_module", {"cluster": "gpu", **DESIRED}, {"method": "UpdateModuleOptionString"}),
    "a fault of a read": ("esxi_kernel_module", {"cluster": "gpu", **DESIRED}, {"method": "RetrievePropertiesEx"}),
    "a dropped call": (
        "esxi_kernel_module",
        {"cluster": "gpu", **DESIRED},
        {"method": "CreateContainerView", "kind": "drop"},
    ),
    "a failed task": (
        "esxi_power",
        {"hosts": ["esx01.lab"], "state": "maintenance"},
        {"method": "EnterMaintenanceMode_Task", "kind": "task_fails"},
    ),
    "a refused token": ("esxi_image", {"cluster": "gpu", "components": {"x": "1"}}, {}),
}


@pytest.mark.parametrize("name", FAILING)
def test_failed_module_leaves_no_session_behind(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    module, options, fault = FAILING[name]
    before = open_sessions(vcenter)
    if fault:
        vcenter.fault(**fault)
    failed = ansible.module(module, **options)
    vcenter.heal()
    assert failed.rc != 0, failed.out
    assert open_sessions(vcenter) == before
    calls = vcenter.calls()
    assert calls.get("POST /api/session", 0) == calls.get("DELETE /api/session", 0)
