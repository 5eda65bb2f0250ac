"""The virtual machines of workers are identified after renames, clones and restores."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import NotFound, Refused
from plugins.module_utils.workers import worker_mark
from plugins.module_utils.workers.worker_identity import WorkerIdentities

KEY = 101


def vm(shown: str, worker: str = "w1", uuid: str = "50-1", *, own: str | None = None, **more: Any) -> Any:
    """Return a machine with a mark; ``uuid`` is the UUID in the mark, ``own`` that of the machine."""
    text = {"name": worker, "cluster": "gpu", "uuid": uuid}
    if more.pop("old", False):
        del text["uuid"]
    values = {
        "name": shown,
        "customValue": [vim.CustomFieldsManager.StringValue(key=KEY, value=json.dumps(text))],
        "config.instanceUuid": own or uuid,
        "config.template": more.get("template", False),
        "runtime.powerState": "poweredOn" if more.get("on") else "poweredOff",
    }
    return vim.VirtualMachine(f"vm-{shown}"), values


def known(*machines: Any) -> WorkerIdentities:
    return WorkerIdentities([SimpleNamespace(name=worker_mark.ATTRIBUTE, key=KEY)], machines)


def shown(identities: WorkerIdentities) -> str | None:
    found = identities.worker("gpu", "w1")
    return found.shown if found else None


@pytest.mark.parametrize(
    ("machines", "worker", "copies"),
    [
        ([vm("w1")], "w1", []),
        ([vm("renamed")], "renamed", []),
        ([vm("w1", old=True)], "w1", []),
        ([vm("renamed", old=True)], None, ["renamed"]),
        ([vm("w1", old=True), vm("copy", old=True, own="50-2")], "w1", ["copy"]),
        ([vm("renamed"), vm("copy", own="50-2")], "renamed", ["copy"]),
        ([vm("w1", own="50-3")], "w1", []),  # restored from a backup as a new machine
        ([vm("restored", own="50-3")], None, ["restored"]),
        ([vm("w1"), vm("w1", worker="w1 of others")], "w1", []),
    ],
)
def test_finds_the_machine_of_a_worker(machines: list[Any], worker: str | None, copies: list[str]) -> None:
    found = known(*machines)
    assert shown(found) == worker
    assert [one.shown for one in found.copies("gpu", "w1")] == copies
    assert [found.mark_of(ref) is not None for ref, _values in machines] == [
        values["name"] not in copies for _ref, values in machines
    ]


@pytest.mark.parametrize("machines", [[vm("other"), vm("w1", own="50-2")], [vm("w1", old=True), vm("other")]])
def test_refuses_machines_matching_by_uuid_and_by_name(machines: list[Any]) -> None:
    with pytest.raises(NotFound) as refused:
        known(*machines).worker("gpu", "w1")
    assert all(f"{ref._moId[3:]} ({ref._moId})" in str(refused.value) for ref, _values in machines)
    assert "clear the custom attribute dml.vsphere.worker" in str(refused.value)


def test_names_that_were_exchanged_change_nothing() -> None:
    found = known(vm("w2", "w1", "50-1"), vm("w1", "w2", "50-2"))
    one, two = found.worker("gpu", "w1"), found.worker("gpu", "w2")
    assert one and two and (one.shown, two.shown) == ("w2", "w1")


@pytest.mark.parametrize("noted", ["rack/1", "rack%2f1", "rack%2F1"])
def test_a_cluster_may_be_noted_in_either_spelling(noted: str) -> None:
    ref, values = vm("w1")
    values["customValue"][0].value = json.dumps({"name": "w1", "cluster": noted, "uuid": "50-1"})
    found = known((ref, values)).worker("rack/1", "w1")
    assert found and found.mark["cluster"] == "rack/1"


def test_workers_of_two_clusters_may_share_a_name() -> None:
    ref, values = vm("w1", "w1", "50-9")
    variables = {"name": "w1", "cluster": "other", "uuid": "50-9"}
    values["customValue"][0].value = json.dumps(variables)
    found = known(vm("w1"), (vim.VirtualMachine("vm-9"), values))
    there, here = found.worker("other", "w1"), found.worker("gpu", "w1")
    assert there and here and (there.ref._moId, here.ref._moId) == ("vm-9", ref._moId)


@pytest.mark.parametrize(
    ("machine", "refused"),
    [
        (vm("restored", own="50-3", on=True), True),  # it uses the worker's addresses
        (vm("restored", own="50-3"), False),
        (vm("renamed", old=True), True),  # it may be the worker
        (vm("golden", own="50-3", on=True, template=True), False),
        (vm("golden", old=True, template=True), False),
    ],
)
def test_refuses_to_build_beside_a_doubtful_machine(machine: Any, refused: bool) -> None:
    identities = known(machine)
    if not refused:
        identities.refuse_doubtful("gpu", "w1")
        return
    with pytest.raises(Refused, match=f"{machine[1]['name']} carries its mark, and no virtual machine is named w1"):
        identities.refuse_doubtful("gpu", "w1")


def inaccessible(name: str) -> Any:
    """Return a machine with a mark whose datastore is inaccessible: vCenter shows none of its configuration."""
    ref, values = vm(name, on=True)
    return ref, {key: value for key, value in values.items() if not key.startswith("config.")}


def test_inaccessible_renamed_worker_is_not_missing() -> None:
    identities = known(inaccessible("w1-old"))

    with pytest.raises(Refused, match=r"w1: could not build it: w1-old carries its mark, and vCenter does not show"):
        identities.refuse_unreadable("gpu", "w1", "build it")


@pytest.mark.parametrize("worker", [vm("w1"), vm("moved")])
def test_inaccessible_copy_of_an_existing_worker_is_ignored(worker: Any) -> None:
    known(worker, inaccessible("copy")).refuse_unreadable("gpu", "w1", "build it")


def test_ignores_an_unreadable_mark() -> None:
    ref, values = vm("w1")
    values["customValue"][0].value = "{"
    assert known((ref, values)).all() == []
