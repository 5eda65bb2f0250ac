"""Which custom attributes may go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.cluster.attributes import Attributes, plan_attributes
from plugins.module_utils.vsphere import inventory, properties

WORKER, PENDING = "dml.vsphere.worker", "dml.vsphere.pending"


@pytest.mark.parametrize(
    ("carriers", "over", "removed"),
    [
        ({}, [], []),
        ({WORKER: []}, [], [WORKER]),
        ({WORKER: ["w1 (vm-1)"]}, [], []),
        ({WORKER: [], PENDING: ["esx01 (host-1)"]}, ["esx01 (host-1)"], [WORKER, PENDING]),
        ({PENDING: ["esx01 (host-1)", "esx02 (host-2)"]}, ["esx01 (host-1)"], []),
        # Two hosts of the same name: only the one whose note is over counts as nothing.
        ({PENDING: ["esx01 (host-1)", "esx01 (host-9)"]}, ["esx01 (host-1)"], []),
        ({WORKER: ["esx01 (host-1)"]}, ["esx01 (host-1)"], []),
    ],
)
def test_removes_attributes_that_no_object_uses(carriers: dict[str, Any], over: list[str], removed: list[str]) -> None:
    plan = plan_attributes(carriers, over)
    assert [change.key for change in plan.changes if change.after is None] == removed
    assert plan.before["notes that are over"] == over


@pytest.mark.parametrize(("many", "names"), [(3, "w1, w2, w3"), (5, "w1, w2, w3 and 2 more")])
def test_names_the_carrier_of_the_other_attributes(many: int, names: str) -> None:
    plan = plan_attributes({WORKER: [f"w{number} (vm-{number})" for number in range(1, many + 1)]}, [])
    assert plan.why == (f"dml.vsphere.worker stays: {names} carry it",)


def rule(principal: str, *, propagate: bool, group: bool = False) -> Any:
    return vim.AuthorizationManager.Permission(principal=principal, group=group, roleId=7, propagate=propagate)


def site(monkeypatch: pytest.MonkeyPatch, *rules: Any) -> tuple[Attributes, list[int]]:
    """Return the attributes that ml@vsphere.local sees, none of which an object carries, and those that it removed."""
    removed: list[int] = []
    fields = [SimpleNamespace(name=WORKER, key=101)]

    def remove(key: int) -> None:
        removed.append(key)
        fields.clear()

    def permissions(entity: Any, inherited: bool) -> list[Any]:
        if None in rules:
            raise vim.fault.NoPermission
        return list(rules)

    content = SimpleNamespace(
        customFieldsManager=SimpleNamespace(field=fields, RemoveCustomFieldDef=remove),
        authorizationManager=SimpleNamespace(RetrieveEntityPermissions=permissions),
        rootFolder=vim.Folder("group-d1"),
    )
    session: Any = SimpleNamespace(server="vcenter.lab", content=content, account="VSPHERE.LOCAL\\ml")
    monkeypatch.setattr(properties, "find_all", lambda *_given: [])
    nothing = SimpleNamespace(hosts=(), refresh=lambda: None)
    monkeypatch.setattr(inventory, "find_hosts", lambda *_given: nothing)
    return Attributes(session, "gpu"), removed


@pytest.mark.parametrize(
    ("rules", "removed"),
    [
        ([rule("VSPHERE.LOCAL\\ml", propagate=True)], [101]),
        ([rule("VSPHERE.LOCAL\\ml", propagate=False)], []),
        ([rule("VSPHERE.LOCAL\\ml", propagate=True), rule("VSPHERE.LOCAL\\x", propagate=False, group=True)], [101]),
        ([rule("VSPHERE.LOCAL\\Administrators", propagate=True, group=True)], [101]),
        ([rule("VSPHERE.LOCAL\\gpu", propagate=False, group=True)], []),
        ([], []),
        ([rule("VSPHERE.LOCAL\\anna", propagate=True)], []),  # a rule of another user says nothing about the account
        ([None], []),  # the account may not even see who may what there
    ],
)
def test_attributes_stay_when_the_account_sees_one_cluster(
    monkeypatch: pytest.MonkeyPatch, rules: list[Any], removed: list[int]
) -> None:
    subject, gone = site(monkeypatch, *rules)
    result = runner.converge_one(runner.OfProgram(), subject)
    assert (gone, result["changed"], result.get("failed")) == (removed, bool(removed), None), result
    assert removed or "one of the others may carry it" in result["why"][0]


def test_attribute_stays_while_a_worker_has_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, removed = site(monkeypatch, rule("VSPHERE.LOCAL\\ml", propagate=True))
    values = [SimpleNamespace(key=102, value="of others"), SimpleNamespace(key=101, value="gpu")]
    machines = [(SimpleNamespace(_moId="vm-1"), {"name": "w1", "customValue": values})]
    empty = [(SimpleNamespace(_moId="vm-2"), {"name": "w2"})]
    kinds = {vim.VirtualMachine: machines + empty, vim.HostSystem: []}
    monkeypatch.setattr(properties, "find_all", lambda _session, kind, _paths: kinds[kind])

    result = runner.converge_one(runner.OfProgram(), subject)

    assert removed == [] and not result["changed"]
    assert result["why"] == ["dml.vsphere.worker stays: w1 carry it"], result
