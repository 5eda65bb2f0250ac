"""The network cards for RDMA: their order, their changes, and refusals of cards that a host does not support."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Refused
from plugins.module_utils.workers import nics
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.worker_spec import WorkerSpec
from tests.fakes.worker_cluster import MANAGEMENT, RDMA_GROUP, FakeWorkerCluster, machine, rdma_card

KNOWN = FakeWorkerCluster().networks
FIRST, SECOND, THIRD = "00:50:56:00:00:01", "00:50:56:00:00:02", "00:50:56:00:00:03"
MACS = {"rdma_nics 0": FIRST, "rdma_nics 1": SECOND}


def rail(key: int, mac: str, device_class: str = "cx7", portgroup: str = RDMA_GROUP) -> Any:
    """A virtual function of a network card with Enhanced DirectPath I/O."""
    backing = vim.vm.device.VirtualPCIPassthrough.DvxBackingInfo(deviceClass=device_class)
    card = vim.vm.device.VirtualSriovEthernetCard(key=key, macAddress=mac, dvxBackingInfo=backing)
    card.backing = KNOWN.named(portgroup).backing()
    card.connectable = vim.vm.device.VirtualDevice.ConnectInfo(
        startConnected=True, allowGuestControl=True, connected=True
    )
    return card


def nic(device_class: str = "cx7", portgroup: str = RDMA_GROUP) -> dict[str, Any]:
    return {"portgroup": portgroup, "device_class": device_class}


def changed(there: Machine, *requested: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the operations on the cards of a machine, each with its device."""
    spec = vim.vm.ConfigSpec(deviceChange=[])
    current = nics.facts(there, KNOWN)
    cards = nics.desired_cards(WorkerSpec("w1", {"rdma_nics": list(requested)}), current, KNOWN, MACS)
    after = nics.in_order_of(current, cards)
    if after["rdma_nics"] != current["rdma_nics"]:
        nics.change(spec, after, there, KNOWN, itertools.count(-101, -1))
    return [(one.operation, one.device) for one in spec.deviceChange]


def test_adds_one_card_with_address_per_entry() -> None:
    made = changed(machine(), nic(), nic(portgroup=MANAGEMENT))

    assert [(operation, card.macAddress, card.dvxBackingInfo.deviceClass) for operation, card in made] == [
        ("add", FIRST, "cx7"),
        ("add", SECOND, "cx7"),
    ]


def test_changes_nothing_if_only_the_card_order_differs() -> None:
    there = machine("w1", rail(4001, THIRD, "cx7-b"), rail(4002, FIRST, "cx7-a"))

    assert changed(there, nic("cx7-a"), nic("cx7-b")) == []


def test_adding_a_card_keeps_other_cards_and_addresses() -> None:
    ((operation, card),) = changed(machine("w1", rail(4001, SECOND)), nic(), nic())

    assert (operation, card.macAddress) == ("add", FIRST), "the card of the second entry stays that of the second"


def cards_of(entries: Sequence[Mapping[str, Any]]) -> Machine:
    cards = [rail(4001 + at, one["mac"], one["device_class"], one["portgroup"]) for at, one in enumerate(entries)]
    return machine("w1", *cards)


def test_all_cards_get_different_addresses_and_keep_them() -> None:
    """Every change of up to three entries of two classes and two networks, against a brute-force search."""
    kinds = [nic("cx6"), nic("cx7"), nic("cx7", MANAGEMENT)]
    lists = [entries for count in range(4) for entries in itertools.product(kinds, repeat=count)]
    macs = dict(zip(nics.keys(3)[1:], (FIRST, SECOND, THIRD)))
    for before, after in itertools.product(lists, lists):
        there = cards_of(addressed(before, {}, macs))

        got = addressed(after, nics.facts(there, KNOWN), macs)

        assert len({one["mac"] for one in got}) == len(after), (before, after, got)
        built = cards_of(nics.in_order_of(nics.facts(there, KNOWN), {"rdma_nics": got})["rdma_nics"])
        assert addressed(after, nics.facts(built, KNOWN), macs) == got, (before, after)
        kept = {one["mac"] for one in got} & {one["mac"] for one in nics.facts(there, KNOWN)["rdma_nics"]}
        assert len(kept) == min(len(before), len(after)), (before, after)


def addressed(
    entries: Sequence[Mapping[str, Any]], current: Mapping[str, Any], macs: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the desired cards of these entries."""
    spec = WorkerSpec("w1", {"rdma_nics": list(entries)})
    return list(nics.desired_cards(spec, current, KNOWN, macs)["rdma_nics"])


def test_card_gives_up_an_address_requested_elsewhere() -> None:
    there = nics.facts(machine("w1", rail(4001, FIRST)), KNOWN)

    got = addressed([nic(), {**nic("cx6"), "mac": FIRST}], there, MACS)

    assert [card["mac"] for card in got] == [SECOND, FIRST]


def test_an_address_requested_twice_is_refused() -> None:
    with pytest.raises(Refused, match=f"w1: could not give {FIRST} to a card: two of its cards would have it"):
        addressed([{**nic(), "mac": FIRST}, {**nic("cx6"), "mac": FIRST.upper()}], {}, MACS)


def test_a_card_without_an_entry_is_removed() -> None:
    there = machine("w1", rail(4001, FIRST), rail(4002, SECOND))

    assert [(operation, card.key) for operation, card in changed(there, nic())] == [("remove", 4002)]
    assert [(operation, card.key) for operation, card in changed(there)] == [("remove", 4001), ("remove", 4002)]


def test_card_of_another_class_inherits_the_address() -> None:
    there = machine("w1", rail(4001, THIRD, "cx6"), rail(4002, SECOND))

    made = changed(there, nic(), nic())

    assert [(operation, card.macAddress) for operation, card in made] == [("add", THIRD), ("remove", THIRD)]


def test_removes_the_card_that_matches_the_removed_entry() -> None:
    there = machine("w1", rail(4001, FIRST, "cx6"), rail(4002, SECOND))
    assert [(operation, card.key) for operation, card in changed(there, nic())] == [("remove", 4001)]

    networks = machine("w1", rail(4001, FIRST, portgroup=MANAGEMENT), rail(4002, SECOND))
    assert [(operation, card.key) for operation, card in changed(networks, nic())] == [("remove", 4001)]


def test_matches_a_requested_address_to_its_card() -> None:
    there = machine("w1", rail(4001, THIRD, portgroup=MANAGEMENT), rail(4002, SECOND))

    made = changed(there, {**nic(portgroup=MANAGEMENT), "mac": SECOND}, nic())

    assert sorted((operation, card.key, card.macAddress) for operation, card in made) == [
        ("edit", 4001, THIRD),
        ("edit", 4002, SECOND),
    ]


def test_pvrdma_gives_way_to_cards_of_a_class() -> None:
    made = changed(machine("w1", rdma_card()), nic(), nic())

    assert [operation for operation, _card in made] == ["add", "add", "remove"]
    assert isinstance(made[2][1], vim.vm.device.VirtualVmxnet3Vrdma)


def test_assigns_guest_addresses_in_the_order_of_entries() -> None:
    there = nics.facts(machine("w1", rail(4001, SECOND), rail(4002, FIRST)), KNOWN)

    cards = nics.desired_cards(WorkerSpec("w1", {"rdma_nics": [nic(), nic()]}), there, KNOWN, MACS)

    assert [card["mac"] for card in cards["rdma_nics"]] == [FIRST, SECOND]
    assert nics.in_order_of(there, cards)["rdma_nics"] == there["rdma_nics"]


@pytest.mark.parametrize(
    ("version", "protocol", "refused"),
    [("9.0.0", "rocev1", True), ("9.1.0", "rocev2", False), ("8.0.3", "rocev1", False), (None, "rocev1", False)],
)
def test_refuses_roce_v1_on_hosts_without_it(version: str | None, protocol: str, *, refused: bool) -> None:
    after = {"rdma_nics": [{"portgroup": "rdma-vm", "protocol": protocol}]}
    desired, host = WorkerSpec("w1", after, ()), {"name": "esx1", "config.product.version": version}
    if not refused:
        nics.refuse_removed(desired, after, host)
        return
    with pytest.raises(Refused, match=r"esx1 runs ESX 9\.0\.0, and 9\.0 removed RoCE version 1; set protocol: rocev2"):
        nics.refuse_removed(desired, after, host)
    nics.refuse_removed(WorkerSpec("w1", {"rdma_nics": None}, ()), after, host)  # the card is not ours to configure
