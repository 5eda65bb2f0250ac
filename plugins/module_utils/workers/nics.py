"""The network cards of a worker: those for RDMA, which are PVRDMA or devices of a class, and one for management."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..core.versions import ROCE_V1, has_roce_v1
from ..errors import Refused
from ..plan import State
from ..vsphere.sdk import ApiObject, vim
from .capacity import host_capacity, machines
from .machine import Machine
from .networks import Networks
from .worker_spec import PROTOCOL, WorkerSpec

RDMA, MANAGEMENT = "rdma_nics", "management_nic"
VERSION = "config.product.version"
# VMware's range for manually assigned addresses: the fourth byte is at most 3f.
_PREFIX, _ROOM = "00:50:56", 0x400000


def rdma_cards(machine: Machine) -> list[ApiObject]:
    """Return the PVRDMA cards; the virtual hardware limits their number."""
    return machine.devices(vim.vm.device.VirtualVmxnet3Vrdma)


def rdma_nics(machine: Machine) -> list[ApiObject]:
    """Return the cards for RDMA: PVRDMA cards, then devices of a class."""
    return [*rdma_cards(machine), *sorted(machines.class_cards(machine.values), key=lambda card: int(card.key))]


def classes_of(machine: Machine | None) -> list[str]:
    """Return the device classes of the RDMA cards."""
    return [name for card in (rdma_nics(machine) if machine else []) if (name := _class(card))]


def management_card(machine: Machine) -> ApiObject:
    """Return the first card without PVRDMA; None if there is no such card."""
    others = [card for card in machine.cards if not isinstance(card, vim.vm.device.VirtualVmxnet3Vrdma)]
    return others[0] if others else None


def facts(machine: Machine, networks: Networks) -> dict[str, Any]:
    """Return the management card and the RDMA cards."""
    return {
        MANAGEMENT: _facts(management_card(machine), networks),
        RDMA: [_facts(card, networks) for card in rdma_nics(machine)],
    }


def keys(number: int) -> list[str]:
    """Return the keys of the MAC addresses of a worker with this number of RDMA cards."""
    return [MANAGEMENT, *(f"{RDMA} {index}" for index in range(number))]


def desired_cards(desired: WorkerSpec, current: State, networks: Networks, macs: Mapping[str, str]) -> dict[str, Any]:
    """Return the desired cards; those for RDMA in the order of the options."""
    after: dict[str, Any] = {}
    if (given := desired[MANAGEMENT]) is not None:
        there = current.get(MANAGEMENT) or {}
        mac = (given.get("mac") or "").lower() or there.get("mac") or macs.get(MANAGEMENT)
        after[MANAGEMENT] = _desired(given, mac, networks)
    if desired[RDMA] is not None:
        cards, places = list(current.get(RDMA) or []), [macs.get(key) for key in keys(len(desired[RDMA]))[1:]]
        requested = [{**given, "place_mac": mac} for given, mac in zip(desired[RDMA], places)]
        matched = [{} if index is None else cards[index] for index in matching(requested, cards)]
        addresses = _addresses(desired[RDMA], matched, places)
        desired_nics = [
            _desired_rdma(desired.name, given, card, mac, networks)
            for given, card, mac in zip(desired[RDMA], matched, addresses)
        ]
        # The next call must match the entries with the same cards.
        settled = in_order_of(current, {RDMA: desired_nics})[RDMA]
        after[RDMA] = [settled[index] for index in matching(requested, settled) if index is not None]
    _refuse_equal_addresses(desired.name, [*after.get(RDMA, []), after.get(MANAGEMENT) or {}])
    return after


def _addresses(
    requested: Sequence[Mapping[str, Any]], matched: Sequence[Mapping[str, Any]], places: Sequence[str | None]
) -> list[str | None]:
    """Return the MAC address of each RDMA card: the requested one, that of its card, or one of the places.

    A new card takes the address of another place if a card that came before it in the options has that of its place.
    """
    given = [str(nic.get("mac") or "").lower() or None for nic in requested]
    kept = [mac or (card.get("mac") if card.get("mac") not in given else None) for mac, card in zip(given, matched)]
    free = [mac for mac in places if mac not in kept]
    own = [mac or (place if place in free else None) for mac, place in zip(kept, places)]
    rest = iter([mac for mac in free if mac not in own])
    return [mac or next(rest, None) for mac in own]


def _refuse_equal_addresses(name: str, cards: Sequence[Mapping[str, object]]) -> None:
    macs = [card["mac"] for card in cards if card.get("mac")]
    for mac in macs:
        if macs.count(mac) > 1:
            reason = "two of its cards would have it"
            raise Refused(name, f"give {mac} to a card", reason, "request another MAC address for one of them")


def in_order_of(current: State, cards: Mapping[str, Any]) -> dict[str, Any]:
    """Return the desired cards with those for RDMA in the order of the current ones; new ones follow."""
    if RDMA not in cards:
        return dict(cards)
    there = list(current.get(RDMA) or [])
    order = [len(there) if index is None else index for index in matching(cards[RDMA], there)]
    ordered = [cards[RDMA][number] for number in sorted(range(len(order)), key=order.__getitem__)]
    return {**cards, RDMA: ordered}


def matching(requested: Sequence[Mapping[str, object]], there: Sequence[Mapping[str, object]]) -> list[int | None]:
    """Return for each requested RDMA card the index of the current card that becomes it; None for a new card.

    A card of its kind with the requested MAC address comes first, then one in its port group, of which that with the
    MAC address of its place in the options is preferred, then any of its kind. Without any, a new card takes the MAC
    address of a card of another kind.
    """
    found: dict[int, int] = {}
    for alike in (_same_mac, _same_place, _same_network, _same_kind, _any):
        for number, nic in enumerate(requested):
            free = [index for index in range(len(there)) if index not in found.values() and alike(nic, there[index])]
            if number not in found and free:
                found[number] = free[0]
    return [found.get(number) for number in range(len(requested))]


def refuse_removed(desired: WorkerSpec, after: State, host: Mapping[str, object]) -> None:
    """Refuse a PVRDMA card with RoCE version 1 on a host that no longer supports it."""
    version = host.get(VERSION)
    if ROCE_V1 not in protocols(desired, after) or has_roce_v1(version):
        return
    reason = f"{host['name']} runs ESX {version}, and 9.0 removed RoCE version 1"
    raise Refused(desired.name, f"configure its PVRDMA card with {ROCE_V1}", reason, f"set protocol: {PROTOCOL}")


def refuse_other_devices(desired: WorkerSpec, host: Mapping[str, object]) -> None:
    """Refuse RDMA cards of a class whose devices are not network cards."""
    for nic in desired[RDMA] or []:
        name = nic.get("device_class")
        if name and not host_capacity.are_cards(host, name):
            reason = f"{host['name']} reports that devices of class {name} are not SR-IOV network cards"
            raise Refused(desired.name, "configure its RDMA card", reason, "name the class of the network cards")


def change(spec: ApiObject, after: State, machine: Machine, networks: Networks, new_key: Iterator[int]) -> None:
    """Add the changes of the network cards to a ConfigSpec; a card of another kind replaces its predecessor."""
    pairs = [(MANAGEMENT, after.get(MANAGEMENT), management_card(machine))]
    cards, requested = rdma_nics(machine), after.get(RDMA)
    if requested is not None:
        there = [_facts(card, networks) for card in cards]
        indexes = matching(requested, there)
        pairs += [
            (RDMA, nic, None if index is None or not _same_kind(nic, there[index]) else cards[index])
            for nic, index in zip(requested, indexes)
        ]
    for key, desired, card in pairs:
        current = _facts(card, networks)
        if desired is None or desired == current:
            continue
        changed = _card(card or _new(key, desired, next(new_key)), desired, current or {}, networks)
        operation = "edit" if card else "add"
        spec.deviceChange.append(vim.vm.device.VirtualDeviceSpec(operation=operation, device=changed))
    kept = {id(card) for _key, _desired, card in pairs}
    for card in cards if requested is not None else []:
        if id(card) not in kept:
            spec.deviceChange.append(vim.vm.device.VirtualDeviceSpec(operation="remove", device=card))


def choose_macs(place: str, name: str, keys: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """Return unique MAC addresses for new cards, which check mode shows as well.

    They are derived from the worker's name and its ``place``: workers of two clusters often have the same names and are
    in the same network, which would fail if they had the same addresses.
    """
    chosen: dict[str, str] = {}
    for key in sorted(keys):
        number = int.from_bytes(hashlib.sha256(f"{place} {name} {key}".encode()).digest()[:4], "big")
        while (mac := _mac(number)) in taken or mac in chosen.values():
            number += 1
        chosen[key] = mac
    return chosen


def _mac(number: int) -> str:
    number %= _ROOM
    return f"{_PREFIX}:{number >> 16:02x}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"


def _desired(given: Mapping[str, Any], mac: str | None, networks: Networks) -> dict[str, Any]:
    return {"portgroup": networks.named(given["portgroup"]).name, "mac": mac, "connected": True}


def _desired_rdma(
    name: str, given: Mapping[str, Any], there: Mapping[str, Any], mac: str | None, networks: Networks
) -> dict[str, Any]:
    network, device_class = networks.named(given["portgroup"]), given.get("device_class")
    nic = _desired(given, mac, networks)
    if device_class:
        return {**nic, "device_class": device_class}
    if not network.key:
        reason = f"{network.name} is on a standard switch, where PVRDMA does not work"
        raise Refused(name, "configure its PVRDMA card", reason, "name a port group of the RDMA switch")
    return {**nic, "protocol": given.get("protocol") or there.get("protocol") or PROTOCOL}


def _same_mac(requested: State, there: Mapping[str, object], key: str = "mac") -> bool:
    mac = str(requested.get(key) or "").lower()
    return bool(mac and mac == there["mac"]) and _same_kind(requested, there)


def _same_place(requested: State, there: Mapping[str, object]) -> bool:
    return _same_network(requested, there) and _same_mac(requested, there, "place_mac")


def _same_network(requested: State, there: Mapping[str, object]) -> bool:
    return bool(_same_kind(requested, there) and requested["portgroup"] == there["portgroup"])


def _same_kind(requested: State, there: Mapping[str, object]) -> bool:
    """Return whether both are PVRDMA cards, or devices of one class."""
    return bool((requested.get("device_class") or "") == there.get("device_class", ""))


def _any(_requested: Mapping[str, object], _there: Mapping[str, object]) -> bool:
    return True


def protocols(desired: WorkerSpec, after: State) -> list[str]:
    """Return the protocols of the requested PVRDMA cards."""
    return [nic["protocol"] for nic in after[RDMA] if "protocol" in nic] if desired[RDMA] is not None else []


def _facts(card: ApiObject, networks: Networks) -> ApiObject:
    if card is None:
        return None
    link = card.connectable
    found = {
        "portgroup": networks.name_of(card.backing),
        "mac": str(card.macAddress or "").lower() or None,
        "connected": bool(link is None or link.startConnected),
    }
    if isinstance(card, vim.vm.device.VirtualVmxnet3Vrdma):
        return {**found, "protocol": card.deviceProtocol}
    return {**found, "device_class": _class(card)} if _class(card) else found


def _class(card: object) -> str:
    """Return the device class of a card; empty if it is not a device of a class."""
    backing = getattr(card, "dvxBackingInfo", None)
    return str(backing.deviceClass) if backing else ""


def _new(key: str, desired: State, number: int) -> ApiObject:
    """Return a new card without its settings; the guest may change the MTU of a device of a class."""
    kinds = vim.vm.device
    if key == MANAGEMENT:
        return kinds.VirtualVmxnet3(key=number)
    if not desired.get("device_class"):
        return kinds.VirtualVmxnet3Vrdma(key=number)
    backing = kinds.VirtualPCIPassthrough.DvxBackingInfo(deviceClass=desired["device_class"])
    return kinds.VirtualSriovEthernetCard(key=number, dvxBackingInfo=backing, allowGuestOSMtuChange=True)


def _card(card: ApiObject, desired: State, now: Mapping[str, object], networks: Networks) -> ApiObject:
    """Return the changed card; a MAC address is written only if it differs."""
    if desired["portgroup"] != now.get("portgroup"):
        card.backing = networks.named(desired["portgroup"]).backing()
    if desired["mac"] and desired["mac"] != now.get("mac"):
        card.addressType, card.macAddress = "manual", desired["mac"]
    if "protocol" in desired:
        card.deviceProtocol = desired["protocol"]
    card.connectable = vim.vm.device.VirtualDevice.ConnectInfo(
        startConnected=True, allowGuestControl=True, connected=True
    )
    return card
