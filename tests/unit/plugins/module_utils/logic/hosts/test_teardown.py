# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a teardown takes away, and who is in its way."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.logic.hosts import teardown

NOTHING = {"switch": None, "port_groups": {}, "hosts": {}, "machines": []}


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
        **more,
    }


def plan(network: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    read = {
        "workers": {"workers": [], "unfinished": []},
        "fabric": {"fabric": network or NOTHING},
        "rules": {"changed": False},
        "attributes": {"changed": False},
        "lock": {"changed": False},
        "switch": "rdma",
        "record": "",
        "evidence": "",
        **more,
    }
    return teardown.plan(read)


def test_where_nothing_was_built_nothing_goes() -> None:
    found = plan()
    assert found["lines"] == found["obstacles"] == []
    assert not found["fabric"]


def test_everything_in_its_order() -> None:
    workers = [{"name": "w2", "vm_built": True}, {"name": "mine", "vm_built": False}, {"name": "w1", "vm_built": True}]
    found = plan(
        fabric(),
        workers={"workers": workers, "unfinished": ["w3"]},
        rules={"changed": True},
        attributes={"changed": True},
        lock={"changed": True},
        record="old.json",
        evidence="hosts.json",
    )
    assert found["lines"] == [
        "take away the rules and overrides of the workers",
        "delete w1, w2, w3 with their disks",
        "take the mark off mine, which were taken over and stay",
        "set the hosts back to hosts.json",
        "take the tag for PVRDMA off esx01",
        "take away the switch rdma, the port groups rdma-vmk, rdma-vm, vmk1 of esx01, esx02",
        "restore the settings that others share from old.json",
        "remove the custom attributes that nothing carries and the folder of the cluster's lock",
    ]
    assert (found["hosts"], found["switch"]) == ("hosts.json", "rdma")
    assert (found["delete"], found["let_go"], found["untag"]) == (["w1", "w2", "w3"], ["mine"], ["esx01"])


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"hosts": {"esx01": host(device="vmk1"), "esx02": host(device="vmk2")}}, "vmk1 of esx01, vmk2 of esx02"),
        ({"switch": {"mtu": 9000, "ours": False}}, "take away the port groups rdma-vmk, rdma-vm, vmk1 of esx01, esx02"),
        (
            {"switch": None, "port_groups": {}, "hosts": {"esx01": {**host(), "adapters": {}}}},
            "take away what is left of the switch rdma on esx01",
        ),
    ],
)
def test_what_of_the_network_goes(network: dict[str, Any], words: str) -> None:
    (line,) = [line for line in plan(fabric(**network))["lines"] if line.startswith("take away")]
    assert words in line


def test_a_network_of_others_stays() -> None:
    theirs = {"mtu": 9000, "ours": False}
    groups = {"rdma-vm": {"vlan": 216, "ours": False}}
    hosts = {"esx01": host(built=False, tagged="vmk1", rdma_vm="vmk1")}
    machines = [{"name": "vm", "port_groups": ["rdma-vm"]}]
    found = plan(fabric(switch=theirs, port_groups=groups, hosts=hosts, machines=machines))
    assert found["lines"] == found["obstacles"] == found["untag"] == []


@pytest.mark.parametrize(
    ("network", "obstacles"),
    [
        (
            {"machines": [{"name": "theirs", "port_groups": ["rdma-vm"]}]},
            ["theirs stays and is connected to rdma-vm"],
        ),
        ({"machines": [{"name": "w1", "port_groups": ["rdma-vm"]}]}, []),
        (
            {"hosts": {"esx01": host(rdma_vm="vmk5")}},
            ["vmk5 of esx01 is on rdma-vm and was not built by this collection"],
        ),
        (
            {
                "switch": {"mtu": 9000, "ours": False},
                "port_groups": {"rdma-vmk": {"vlan": 0, "ours": True}, "old": {"vlan": 0, "ours": False}},
                "machines": [{"name": "a", "port_groups": ["old"]}, {"name": "b", "port_groups": ["rdma-vmk"]}],
            },
            ["b stays and is connected to rdma-vmk"],
        ),
    ],
)
def test_who_is_in_the_way(network: dict[str, Any], obstacles: list[str]) -> None:
    workers = {"workers": [{"name": "w1", "vm_built": True}], "unfinished": []}
    assert plan(fabric(**network), workers=workers)["obstacles"] == obstacles
