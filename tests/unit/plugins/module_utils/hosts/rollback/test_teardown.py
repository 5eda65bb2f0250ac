"""The objects that a teardown removes, and those of others that prevent it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plugins.module_utils.hosts.rollback import teardown

KEPT: dict[str, Any] = {"switch": False, "port_groups": [], "in_use": [], "shared_with": []}
NOTHING = {"switch": None, "port_groups": {}, "hosts": {}, "machines": [], "removal": KEPT}
REMOVED = {**KEPT, "switch": True, "port_groups": ["rdma-vmk", "rdma-vm"]}


def host(*, built: bool = True, device: str = "vmk1", tagged: str = "", **adapters: str) -> dict[str, Any]:
    there = {"rdma-vmk": {"device": device}} if built else {}
    there.update({group.replace("_", "-"): {"device": name} for group, name in adapters.items()})
    note = {"joined": True, "adapters": ["rdma-vmk"]} if built else None
    return {"uplinks": ["vmnic2"], "adapters": there, "built": note, "tagged": tagged}


def fabric(**more: Any) -> dict[str, Any]:
    return {
        "switch": {"mtu": 9000, "ours": True},
        "port_groups": {"rdma-vmk": {"vlan": 216, "ours": True}, "rdma-vm": {"vlan": 216, "ours": True}},
        "hosts": {"esx01": host(tagged="vmk1"), "esx02": host()},
        "machines": [],
        "removal": REMOVED,
        **more,
    }


def plan(network: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    read = {
        "cluster": "gpu",
        "workers": [],
        "unfinished": [],
        "fabric": network or NOTHING,
        "rules": [],
        "out_of_service": [],
        "due": {"attributes": False, "lock": False},
        "switch": "rdma",
        "record": "",
        "record_dir": "evidence",
        "evidence": "",
        **more,
    }
    return teardown.plan(read)


def worker(name: str, *, built: bool = True, shown: str = "", foreign: Sequence[str] = ()) -> dict[str, Any]:
    return {"name": name, "vm_name": shown or name, "vm_built": built, "vm_foreign_disks": list(foreign)}


def test_the_plan_names_the_disks_that_stay() -> None:
    planned = plan(workers=[worker("w1", foreign=["[shared] w1/dataset.vmdk"]), worker("mine", built=False)])

    assert planned["lines"][1] == "detach and keep [shared] w1/dataset.vmdk of w1, which this collection did not create"


def test_names_a_renamed_worker_and_deletes_it() -> None:
    there = [{"name": "theirs", "port_groups": ["rdma-vm"]}]
    planned = plan(fabric(machines=there), workers=[worker("w1", shown="theirs"), worker("mine", built=False)])
    assert planned["lines"][0] == "delete w1 (renamed to theirs) with their disks"
    assert (planned["delete"], planned["refused"]) == (["w1"], "")


def test_without_built_objects_nothing_is_removed() -> None:
    planned = plan()
    assert planned["lines"] == ["nothing here was built by this collection"]
    assert not planned["any"] and not planned["fabric"]
    assert planned["refused"] == planned["left"] == ""


def test_lists_all_steps_in_their_order() -> None:
    workers = [worker("w2"), worker("mine", built=False), worker("w1")]
    planned = plan(
        fabric(),
        workers=workers,
        unfinished=["w3"],
        rules=["workers", "vmotion-test"],
        due={"attributes": True, "lock": True},
        record="old.json",
        evidence="hosts.json",
    )
    assert planned["lines"] == [
        "remove the rules and overrides of the workers",
        "delete w1, w2, w3 with their disks",
        "remove the mark from mine, which were adopted and stay",
        "restore the hosts from hosts.json",
        "remove the tag for PVRDMA from esx01",
        "remove the switch rdma, the port groups rdma-vmk, rdma-vm, vmk1 of esx01, esx02",
        "restore the shared settings from old.json",
        "remove the custom attributes that no object carries and the folder of the cluster's lock",
    ]
    assert (planned["hosts"], planned["switch"], planned["record_dir"]) == ("hosts.json", "rdma", "evidence")
    assert (planned["delete"], planned["unmark"], planned["untag"]) == (["w1", "w2", "w3"], ["mine"], ["esx01"])
    assert [worker["name"] for worker in planned["workers"]] == ["w1", "w2", "w3", "mine"]


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"hosts": {"esx01": host(device="vmk1"), "esx02": host(device="vmk2")}}, "vmk1 of esx01, vmk2 of esx02"),
        ({"removal": {**REMOVED, "switch": False}}, "remove the port groups rdma-vmk, rdma-vm, vmk1 of esx01, esx02"),
        (
            {"removal": KEPT, "hosts": {"esx01": {**host(), "adapters": {}}}},
            "remove the rest of the switch rdma on esx01",
        ),
        ({"removal": {**KEPT, "shared_with": ["esx21"]}}, "leave the switch rdma to esx21 of other clusters"),
    ],
)
def test_names_the_removed_parts_of_the_network(network: dict[str, Any], words: str) -> None:
    assert len([line for line in plan(fabric(**network))["lines"] if words in line]) == 1


def test_keeps_a_foreign_network() -> None:
    theirs = {"mtu": 9000, "ours": False}
    groups = {"rdma-vm": {"vlan": 216, "ours": False}}
    hosts = {"esx01": host(built=False, tagged="vmk1", rdma_vm="vmk1")}
    machines = [{"name": "vm", "port_groups": ["rdma-vm"]}]
    planned = plan(fabric(switch=theirs, port_groups=groups, hosts=hosts, machines=machines, removal=KEPT))
    assert not planned["any"] and planned["refused"] == "" and planned["untag"] == []


@pytest.mark.parametrize(
    ("network", "obstacle"),
    [
        ({"machines": [{"name": "theirs", "port_groups": ["rdma-vm"]}]}, "theirs stays and is connected to rdma-vm"),
        ({"machines": [{"name": "w1", "port_groups": ["rdma-vm"]}]}, ""),
        (
            {"removal": {**REMOVED, "in_use": ["host esx02 is on the switch and was not put there"]}},
            "host esx02 is on the switch and was not put there",
        ),
        (
            {
                "removal": {**KEPT, "port_groups": ["rdma-vmk"]},
                "machines": [{"name": "a", "port_groups": ["old"]}, {"name": "b", "port_groups": ["rdma-vmk"]}],
            },
            "b stays and is connected to rdma-vmk",
        ),
    ],
)
def test_others_on_the_network_prevent_the_teardown(network: dict[str, Any], obstacle: str) -> None:
    refused = plan(fabric(**network), workers=[worker("w1")])["refused"]
    remedy = "connect or move that elsewhere, nothing was changed"
    assert refused == (obstacle and f"gpu: could not remove what was built: {obstacle}; {remedy}")


def test_does_not_mention_a_switch_without_own_hosts() -> None:
    planned = plan(fabric(hosts={"esx01": host(built=False)}, removal={**KEPT, "shared_with": ["esx21"]}))

    assert not planned["any"] and planned["left"] == ""


def test_unconfirmed_teardown_names_steps_and_the_confirmation() -> None:
    planned = plan(unfinished=["w3"], evidence="hosts.json")
    unconfirmed = "gpu: nothing was removed, because the removal is not confirmed: -e confirm=true would"
    assert planned["unconfirmed"] == f"{unconfirmed} delete w3 with their disks; restore the hosts from hosts.json"


def test_hosts_of_unfinished_changes_require_evidence_for_removal() -> None:
    out = [{"host": "esx01", "ours": True}, {"host": "esx02", "ours": False}]
    there = "an unfinished change left esx01 out of service"

    planned, restoring = plan(unfinished=["w3"], out_of_service=out), plan(evidence="hosts.json", out_of_service=out)

    remedy = "finish that with dml.vsphere.hosts, or restore the hosts with rollback_evidence, nothing was changed"
    assert planned["refused"] == f"gpu: could not remove what was built: {there}; {remedy}"
    assert restoring["refused"] == ""
    assert restoring["left"] == f"gpu: could not remove everything; remaining: {there}; run again"


def test_hosts_to_restore_are_not_reported_as_left() -> None:
    assert plan(evidence="hosts.json")["left"] == ""
    left = plan(unfinished=["w3"], evidence="hosts.json")["left"]
    assert left == "gpu: could not remove everything; remaining: delete w3 with their disks; run again"
