"""The role in vCenter: what it holds, who has it, and what of others is never touched."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.cluster.vcenter_role import Grant, VcenterRole, canonical, modules_of
from plugins.module_utils.errors import NotFound, Refused
from tests.fakes.roles import FakeManager

ROOT, CLUSTER = vim.Folder("group-d1"), vim.ClusterComputeResource("domain-c1")
PATHS = {"/dc/host/gpu": CLUSTER}


def role(manager: FakeManager, desired: Any, *grants: Grant, name: str = "dml.vsphere") -> VcenterRole:
    index = SimpleNamespace(FindByInventoryPath=PATHS.get)
    content = SimpleNamespace(authorizationManager=manager, rootFolder=ROOT, searchIndex=index)
    return VcenterRole(SimpleNamespace(server="vcenter.lab", content=content), name, desired, grants)  # type: ignore[arg-type]


def grant(principal: str = "LAB\\ansible", path: str = "/dc/host/gpu") -> Grant:
    return Grant(principal, False, path, True)


def apply(subject: VcenterRole) -> None:
    plan = subject.plan(subject.read())
    if plan.changes:
        subject.apply(plan)


def test_a_new_role_is_made_and_given(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch)
    apply(role(manager, ["Host.Config.Settings"], grant()))
    assert manager.writes == [
        ("add", "dml.vsphere", ["Host.Config.Settings"]),
        ("grant", "domain-c1", "LAB\\ansible", 9),
    ]


def test_a_role_that_is_as_it_should_be_is_not_written_however_its_account_is_spelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = FakeManager(monkeypatch, "Host.Config.Settings")
    manager.rule(CLUSTER, "LAB\\Ansible")
    apply(role(manager, ["Host.Config.Settings"], grant("ansible@lab")))
    assert manager.writes == []


def test_privileges_that_came_and_went_are_one_update_and_grants_of_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manager = FakeManager(monkeypatch, "Host.Config.Settings")
    manager.rule(CLUSTER, "LAB\\somebody")
    subject = role(manager, ["Profile.View"], grant())
    plan = subject.plan(subject.read())
    assert "LAB\\somebody on gpu" in plan.after["grants"]
    subject.apply(plan)
    assert manager.writes == [("update", 7, ["Profile.View"]), ("grant", "domain-c1", "LAB\\ansible", 7)]


def test_an_account_that_has_another_role_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    manager.rule(CLUSTER, "LAB\\ansible", role=-1)
    with pytest.raises(Refused, match="it has another role there, and vCenter keeps one for each object"):
        apply(role(manager, ["Profile.View"], grant()))
    assert manager.writes == []


def test_refuses_what_this_vcenter_does_not_support_before_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch)
    with pytest.raises(Refused, match=r"make the role dml\.vsphere: it has no privilege Vcls\.Unheard"):
        apply(role(manager, ["Vcls.Unheard", "Profile.View"]))
    with pytest.raises(NotFound, match="find /dc/host/none: the inventory has nothing there"):
        apply(role(manager, ["Profile.View"], grant(path="/dc/host/none")))
    assert manager.writes == []


def test_a_role_is_removed_with_its_grants_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    apply(role(manager, None))
    assert manager.writes == [("remove", 7, False)]
    gone = FakeManager(monkeypatch)
    apply(role(gone, None))
    assert gone.writes == []


@pytest.mark.parametrize("name", ["Admin", "dml.vsphereX", "DML.vsphere", ""])
def test_roles_of_others_are_never_taken(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with pytest.raises(Refused, match="belong to this collection; choose such a name"):
        role(FakeManager(monkeypatch), None, name=name)


def test_accounts_are_compared_in_the_forms_that_vcenter_has() -> None:
    assert canonical("LAB.local\\Ansible") == canonical("ansible@lab.LOCAL") == ("lab.local", "ansible")
    assert canonical("root") == ("", "root")


def test_modules_that_are_unknown_are_refused_by_name() -> None:
    assert "esxi_roce" in modules_of(None)
    assert "vcenter_role" not in modules_of(None)
    assert modules_of(["vcenter_role"]) == ["vcenter_role"]
    with pytest.raises(Refused, match="no privileges are known for esxi_nothing"):
        modules_of(["esxi_roce", "esxi_nothing"])
