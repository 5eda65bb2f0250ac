"""The role of the collection's account against the simulated data centre."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lab.simulator import ROOT, Simulator
from plugins.module_utils.hosts.module_privileges import TABLE as NEEDS
from plugins.module_utils.vsphere import session
from tests.integration.ansible import Ansible, Outcome

ML = {"principal": "LAB\\ml", "path": "/dc1"}


def methods(vcenter: Simulator) -> list[str]:
    return [one["method"] for one in vcenter.writes()]


def role(ansible: Ansible, **options: Any) -> Outcome:
    outcome = ansible.module("vcenter_role", **options)
    assert outcome.rc == 0, outcome.msg
    return outcome


def person(vcenter: Simulator, action: Any) -> Any:
    """Return what a person does with the authorization manager."""
    with session.session({"validate_certs": True, "timeout": 60, **vcenter.connection}) as opened:
        return action(opened.content)


def test_creates_the_role_and_its_grant_once(vcenter: Simulator, ansible: Ansible) -> None:
    options: dict[str, Any] = {"grants": [ML]}
    check = ansible.module("vcenter_role", check=True, **options)
    assert check.changed and vcenter.writes() == []
    first = role(ansible, **options)
    assert first.changed
    assert methods(vcenter) == ["AddAuthorizationRole", "SetEntityPermissions"]
    expected = NEEDS.privileges_of(NEEDS.modules() - {"vcenter_role"})
    assert first.result["state"]["privileges"] == expected
    assert first.result["state"]["grants"] == {"LAB\\ml on /dc1": {"group": False, "propagate": True}}
    assert "Authorization.ModifyRoles" not in expected and "Global.Settings" in expected
    vcenter.clear()
    for again in (ansible.module("vcenter_role", check=True, **options), role(ansible, **options)):
        assert not again.changed
    assert vcenter.writes() == []


def test_narrows_a_role_to_the_requested_modules(vcenter: Simulator, ansible: Ansible) -> None:
    role(ansible, modules=["worker_vm", "cluster_lock"])
    vcenter.clear()
    outcome = role(ansible, modules=["cluster_lock"])
    assert methods(vcenter) == ["UpdateAuthorizationRole"]
    assert outcome.result["state"]["privileges"] == ["Folder.Create", "Folder.Delete", "Folder.Rename"]
    assert {one["privilege"] for one in outcome.result["privileges"]} == {
        "Folder.Create",
        "Folder.Delete",
        "Folder.Rename",
    }


def test_absent_removes_the_role_and_keeps_others(vcenter: Simulator, ansible: Ansible) -> None:
    before = person(vcenter, lambda content: sorted(one.name for one in content.authorizationManager.roleList))
    role(ansible, grants=[ML])
    role(ansible, name="dml.vsphere guests", modules=["cluster_lock"])
    check = ansible.module("vcenter_role", check=True, state="absent")
    assert list(check.result["diff"][0]["before"]["grants"]) == ["LAB\\ml on dc1"]
    role(ansible, state="absent")
    assert not role(ansible, state="absent").changed
    after = person(vcenter, lambda content: sorted(one.name for one in content.authorizationManager.roleList))
    assert after == sorted([*before, "dml.vsphere guests"])


@pytest.mark.every_release
def test_playbook_creates_the_role_once_for_all_clusters(vcenter: Simulator, ansible: Ansible) -> None:
    inventory = ansible.folder / "hosts.yml"
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    inventory.write_text(yaml.safe_dump({"clusters": {"hosts": {"gpu": {}, "other": {}}, "vars": local}}))
    desired = '{"account_grants": [{"principal": "ml@lab"}], "account_modules": ["cluster_lock"]}'
    outcome = ansible.playbook(ROOT / "playbooks" / "account.yml", "-i", str(inventory), "-e", desired)
    assert outcome.rc == 0, outcome.out
    assert methods(vcenter) == ["AddAuthorizationRole", "SetEntityPermissions"]
