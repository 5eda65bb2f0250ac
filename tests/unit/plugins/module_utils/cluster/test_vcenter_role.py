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


def test_creates_and_grants_a_new_role(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch)
    apply(role(manager, ["Host.Config.Settings"], grant()))
    assert manager.writes == [
        ("add", "dml.vsphere", ["Host.Config.Settings"]),
        ("grant", "domain-c1", "LAB\\ansible", 9),
    ]


def test_leaves_a_correct_role_for_any_account_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Host.Config.Settings")
    manager.rule(CLUSTER, "LAB\\Ansible")
    apply(role(manager, ["Host.Config.Settings"], grant("ansible@lab")))
    assert manager.writes == []


def test_updates_privileges_once_and_keeps_other_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Host.Config.Settings")
    manager.rule(CLUSTER, "LAB\\somebody")
    subject = role(manager, ["Profile.View"], grant())
    plan = subject.plan(subject.read())
    assert "LAB\\somebody on gpu" in plan.after["grants"]
    subject.apply(plan)
    assert manager.writes == [("update", 7, ["Profile.View"]), ("grant", "domain-c1", "LAB\\ansible", 7)]


def test_refuses_an_account_with_another_role_there(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    manager.rule(CLUSTER, "LAB\\ansible", role=-1)
    with pytest.raises(Refused, match=r"LAB\\ansible has another role there, and vCenter keeps one for each object"):
        apply(role(manager, ["Profile.View"], grant()))
    assert manager.writes == []


SPELLINGS = [("ACME\\Admin", "admin@acme.com"), ("ACME.COM\\Admin", "ACME\\admin")]


@pytest.mark.parametrize(("listed", "granted"), SPELLINGS)
def test_refuses_another_role_under_a_short_domain(monkeypatch: pytest.MonkeyPatch, listed: str, granted: str) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    manager.rule(CLUSTER, listed, role=-1)

    with pytest.raises(Refused) as caught:
        apply(role(manager, ["Profile.View"], grant(granted)))

    assert f"{listed} has another role there" in str(caught.value) and manager.writes == []


@pytest.mark.parametrize(("listed", "granted"), SPELLINGS)
def test_reads_back_a_grant_under_a_short_domain(monkeypatch: pytest.MonkeyPatch, listed: str, granted: str) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    manager.rule(CLUSTER, listed)

    plan = (subject := role(manager, ["Profile.View"], grant(granted))).plan(subject.read())

    assert not plan.changes and list(plan.after["grants"]) == [f"{granted} on /dc/host/gpu"]


def test_keeps_accounts_of_similar_domains_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    manager.rule(CLUSTER, "ACME.ORG\\admin", role=-1)
    manager.rule(CLUSTER, "ACME.COM\\admin")
    manager.rule(CLUSTER, "VSPHERE.LOCAL\\admin", role=-1)
    manager.rule(CLUSTER, "ACME\\admin", role=-1, group=True)

    apply(role(manager, ["Profile.View"], grant("admin@acme.com")))

    assert manager.writes == []


def test_refuses_unknown_privileges_and_paths_before_any_write(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch)
    with pytest.raises(Refused, match=r"make the role dml\.vsphere: it has no privilege Vcls\.Unheard"):
        apply(role(manager, ["Vcls.Unheard", "Profile.View"]))
    with pytest.raises(Refused, match=r"Interact\.PowerOff; leave esxi_power, worker_vm out of modules"):
        apply(role(manager, ["VirtualMachine.Interact.PowerOff", "Profile.View"]))
    with pytest.raises(NotFound, match="find /dc/host/none: the inventory has nothing there"):
        apply(role(manager, ["Profile.View"], grant(path="/dc/host/none")))
    assert manager.writes == []


def test_removes_a_role_with_its_grants_once(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = FakeManager(monkeypatch, "Profile.View")
    apply(role(manager, None))
    assert manager.writes == [("remove", 7, False)]
    gone = FakeManager(monkeypatch)
    apply(role(gone, None))
    assert gone.writes == []


@pytest.mark.parametrize("name", ["Admin", "dml.vsphereX", "DML.vsphere", ""])
def test_refuses_role_names_outside_the_collection(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with pytest.raises(Refused, match="belong to this collection; choose such a name"):
        role(FakeManager(monkeypatch), None, name=name)


def test_compares_accounts_in_every_form_of_vcenter() -> None:
    assert canonical("LAB.local\\Ansible") == canonical("ansible@lab.LOCAL") == ("lab.local", "ansible")
    assert canonical("root") == ("", "root")


def test_modules_that_are_unknown_are_refused_by_name() -> None:
    assert "esxi_roce" in modules_of(None)
    assert "vcenter_role" not in modules_of(None)
    assert modules_of(["vcenter_role"]) == ["vcenter_role"]
    with pytest.raises(Refused, match="no privileges are known for esxi_nothing"):
        modules_of(["esxi_roce", "esxi_nothing"])
