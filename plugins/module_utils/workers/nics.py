# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The network cards of a worker: one for RDMA, which is PVRDMA or a device of a class, and one for management."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..core.versions import ROCE_V1, has_roce_v1
from ..errors import Refused
from ..vsphere.sdk import vim
from .capacity import host_capacity, machines
from .machine import Machine
from .networks import Networks
from .worker_spec import PROTOCOL, WorkerSpec

RDMA, MANAGEMENT = "rdma_nic", "management_nic"
VERSION = "config.product.version"
# vSphere Networking, PVRDMA Support: virtual hardware 13. RoCE v2 came with vSphere 6.7 and its virtual hardware 14, as
# did the choice of the protocol (vSphere API, VirtualVmxnet3Vrdma.deviceProtocol).
_SINCE = {ROCE_V1: 13, "rocev2": 14}
# VMware's range for manually assigned addresses: the fourth byte is at most 3f.
_PREFIX, _ROOM = "00:50:56", 0x400000


def rdma_cards(machine: Machine) -> list[Any]:
    """Return the PVRDMA cards; a worker should have one."""
    return machine.devices(vim.vm.device.VirtualVmxnet3Vrdma)


def rdma_nics(machine: Machine) -> list[Any]:
    """Return the cards for RDMA: PVRDMA cards, then devices of a class; a worker should have one."""
    return [*rdma_cards(machine), *sorted(machines.class_cards(machine.values), key=lambda card: int(card.key))]


def class_of(machine: Machine | None) -> str:
    """Return the device class of the RDMA card; empty without one, and for PVRDMA."""
    cards = rdma_nics(machine) if machine else []
    return _class(cards[0]) if cards else ""


def management_card(machine: Machine) -> Any:
    """Return the first card without PVRDMA; None if there is no such card."""
    others = [card for card in machine.cards if not isinstance(card, vim.vm.device.VirtualVmxnet3Vrdma)]
    return others[0] if others else None


def facts(machine: Machine, networks: Networks) -> dict[str, Any]:
    """Return the management card, the RDMA card, and the number of RDMA cards."""
    rdma = rdma_nics(machine)
    return {
        MANAGEMENT: _facts(management_card(machine), networks),
        RDMA: _facts(rdma[0], networks) if rdma else None,
        "rdma_nics": len(rdma),
    }


def desired_cards(
    desired: WorkerSpec, current: Mapping[str, Any], networks: Networks, macs: Mapping[str, str]
) -> dict[str, Any]:
    """Return the desired cards."""
    after: dict[str, Any] = {}
    for key in (MANAGEMENT, RDMA):
        given = desired[key]
        if given is None:
            continue
        network = networks.named(given["portgroup"])
        device_class = given.get("device_class", "")
        if key == RDMA and not device_class and not network.key:
            reason = f"{network.name} is on a standard switch, where PVRDMA does not work"
            raise Refused(desired.name, "configure its PVRDMA card", reason, "name a port group of the RDMA switch")
        there = current.get(key) or {}
        mac = given.get("mac", "").lower() or there.get("mac") or macs.get(key)
        after[key] = {"portgroup": network.name, "mac": mac, "connected": True}
        if key == RDMA:
            protocol = given.get("protocol") or there.get("protocol") or PROTOCOL
            after[key].update({"device_class": device_class} if device_class else {"protocol": protocol})
            after["rdma_nics"] = 1
    return after


def refuse_old_hardware(desired: WorkerSpec, after: Mapping[str, Any], machine: Machine) -> None:
    """Refuse a PVRDMA card if the virtual hardware of the machine or its template is too old for it."""
    card, version = after.get(RDMA), str(machine["config.version"] or "")
    number = version.removeprefix("vmx-")
    if desired[RDMA] is None or not card or "protocol" not in card or not number.isdigit():
        return
    least = _SINCE[card["protocol"]]
    if int(number) < least:
        reason = f"{machine.name} has virtual hardware {int(number)}, and {card['protocol']} needs {least}"
        raise Refused(
            desired.name, "configure its PVRDMA card", reason, f"upgrade the hardware of {machine.name}, powered off"
        )


def refuse_removed(desired: WorkerSpec, after: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Refuse a PVRDMA card with RoCE version 1 on a host that no longer supports it."""
    card, version = after.get(RDMA), host.get(VERSION)
    if desired[RDMA] is None or not card or card.get("protocol") != ROCE_V1 or has_roce_v1(version):
        return
    reason = f"{host['name']} runs ESX {version}, and 9.0 removed RoCE version 1"
    raise Refused(desired.name, f"configure its PVRDMA card with {ROCE_V1}", reason, f"set protocol: {PROTOCOL}")


def refuse_other_devices(desired: WorkerSpec, host: Mapping[str, Any]) -> None:
    """Refuse an RDMA card of a class whose devices are not network cards."""
    name = (desired[RDMA] or {}).get("device_class")
    if not name or host_capacity.are_cards(host, name):
        return
    reason = f"{host['name']} reports that devices of class {name} are not SR-IOV network cards"
    raise Refused(desired.name, "configure its RDMA card", reason, "name the class of the network cards")


def change(spec: Any, after: Mapping[str, Any], machine: Machine, networks: Networks, new_key: Iterator[int]) -> None:
    """Add the changes of the network cards to a ConfigSpec."""
    rdma, requested = rdma_nics(machine), after.get(RDMA)
    kept = next((card for card in rdma if requested is None or _class(card) == requested.get("device_class", "")), None)
    for card, key in ((management_card(machine), MANAGEMENT), (kept, RDMA)):
        desired, current = after.get(key), _facts(card, networks)
        if desired is None or desired == current:
            continue
        changed = _card(card or _new(key, desired, next(new_key)), desired, current or {}, networks)
        operation = "edit" if card else "add"
        spec.deviceChange.append(vim.vm.device.VirtualDeviceSpec(operation=operation, device=changed))
    for card in rdma if requested or after.get("rdma_nics") == 1 else []:
        if card is not kept:
            spec.deviceChange.append(vim.vm.device.VirtualDeviceSpec(operation="remove", device=card))


def choose_macs(name: str, keys: Collection[str], taken: Collection[str]) -> dict[str, str]:
    """Return unique MAC addresses for new cards, derived from the worker's name so that check mode shows them."""
    chosen: dict[str, str] = {}
    for key in sorted(keys):
        number = int.from_bytes(hashlib.sha256(f"{name} {key}".encode()).digest()[:4], "big")
        while (mac := _mac(number)) in taken or mac in chosen.values():
            number += 1
        chosen[key] = mac
    return chosen


def _mac(number: int) -> str:
    number %= _ROOM
    return f"{_PREFIX}:{number >> 16:02x}:{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"


def _facts(card: Any, networks: Networks) -> Any:
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


def _new(key: str, desired: Mapping[str, Any], number: int) -> Any:
    """Return a new card without its settings; the guest may change the MTU of a device of a class."""
    kinds = vim.vm.device
    if key == MANAGEMENT:
        return kinds.VirtualVmxnet3(key=number)
    if not desired.get("device_class"):
        return kinds.VirtualVmxnet3Vrdma(key=number)
    backing = kinds.VirtualPCIPassthrough.DvxBackingInfo(deviceClass=desired["device_class"])
    return kinds.VirtualSriovEthernetCard(key=number, dvxBackingInfo=backing, allowGuestOSMtuChange=True)


def _card(card: Any, desired: Mapping[str, Any], now: Mapping[str, Any], networks: Networks) -> Any:
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
