"""The vCenter login of the environment reaches the modules that connect, and no other child process of a playbook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.rolling import datacentre

SPY = "#!/bin/sh\nenv >> '{ran}'\necho spied\nexit {code}\n"
WRAPPER = "- import_playbook: dml.vsphere.runs\n"
OTHER = (
    "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks: [{command: env, changed_when: false}]\n"
)


def spies(folder: Path) -> Path:
    """Return an inventory whose connections and lookups run programs that write their environment."""
    for name, code in (("ssh", 255), ("pipe", 0)):
        spy = folder / name
        spy.write_text(SPY.format(ran=folder / f"{name}.env", code=code))
        spy.chmod(0o755)
    user = f"{{{{ lookup('ansible.builtin.pipe', '{folder / 'pipe'}') }}}}"
    variables = {"ansible_connection": "ssh", "ansible_ssh_executable": str(folder / "ssh"), "ansible_user": user}
    worker = {"ansible_host": "192.0.2.7", "ansible_ssh_retries": 0, **variables}
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"children": {"workers": {"hosts": {"w1": worker}}}}}))
    return inventory


@pytest.mark.parametrize("playbook", ["playbooks/runs.yml", WRAPPER])
def test_ssh_and_inventory_lookups_never_receive_the_login(tmp_path: Path, playbook: str) -> None:
    ansible = Ansible({"VMWARE_HOST": "vc", "VMWARE_USER": "somebody", "VMWARE_PASSWORD": "hush-hush"}, tmp_path)
    if playbook == WRAPPER:
        (tmp_path / "wrapper.yml").write_text(WRAPPER)
        playbook = str(tmp_path / "wrapper.yml")

    ansible.playbook(playbook, "-i", str(spies(tmp_path)))

    for name in ("ssh", "pipe"):
        ran = (tmp_path / f"{name}.env").read_text()
        assert "VMWARE_HOST=vc" in ran and "hush-hush" not in ran and "somebody" not in ran, name


def test_other_plays_in_the_run_keep_the_login(tmp_path: Path) -> None:
    ansible = Ansible({"VMWARE_USER": "somebody", "VMWARE_PASSWORD": "hush-hush"}, tmp_path)
    mixed = tmp_path / "mixed.yml"
    mixed.write_text(WRAPPER + OTHER)

    done = ansible.playbook(str(mixed), "-i", str(spies(tmp_path)), "-vv")

    assert "VMWARE_PASSWORD=hush-hush" in done.out


def test_modules_connect_with_the_login_of_the_environment(
    start: Start, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    vcenter = start(text=datacentre("name: esx01.lab"))
    read = {"ansible_connection": "local", "vsphere_password": "{{ lookup('ansible.builtin.env', 'VMWARE_PASSWORD') }}"}
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"children": {"clusters": {"hosts": {"gpu": read}}}}}))

    done = ansible_for(vcenter).playbook(
        "playbooks/evidence.yml", "-i", str(inventory), "-e", f"evidence_dir={tmp_path / 'evidence'}"
    )

    assert done.rc == 0, done.out
    assert list((tmp_path / "evidence").iterdir())
