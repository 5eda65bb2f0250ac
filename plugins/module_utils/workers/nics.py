# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The network cards of a worker: one for PVRDMA, exactly one, and one for management."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..core.versions import ROCE_V1, has_roce_v1
from ..errors import Refused
from ..vsphere.sdk import vim
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


def management_card(machine: Machine) -> Any:
    """Return the first card without PVRDMA; None if there is no such card."""
    others = [card for card in machine.cards if not isinstance(card, vim.vm.device.VirtualVmxnet3Vrdma)]
    return others[0] if others else None


def facts(machine: Machine, networks: Networks) -> dict[str, Any]:
    """Return the management card, the PVRDMA card, and the number of PVRDMA cards."""
    rdma = rdma_cards(machine)
    return {
        MANAGEMENT: _facts(management_card(machine), networks),
        RDMA: {**_facts(rdma[0], networks), "protocol": rdma[0].deviceProtocol} if rdma else None,
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
        if key == RDMA and not network.key:
            said = f"{network.name} is on a standard switch, where PVRDMA does not work"
            raise Refused(desired.name, "configure its PVRDMA card", said, "name a port group of the RDMA switch")
        there = current.get(key) or {}
        mac = given.get("mac", "").lower() or there.get("mac") or macs.get(key)
        after[key] = {"portgroup": network.name, "mac": mac, "connected": True}
        if key == RDMA:
            after[key]["protocol"] = given.get("protocol") or there.get("protocol") or PROTOCOL
            after["rdma_nics"] = 1
    return after


def refuse_old_hardware(desired: WorkerSpec, after: Mapping[str, Any], machine: Machine) -> None:
    """Refuse a PVRDMA card if the virtual hardware of the machine or its template is too old for it."""
    card, version = after.get(RDMA), str(machine["config.version"] or "")
    number = version.removeprefix("vmx-")
    if desired[RDMA] is None or not card or not number.isdigit():
        return
    least = _SINCE[card["protocol"]]
    if int(number) < least:
        said = f"{machine.name} has virtual hardware {int(number)}, and {card['protocol']} needs {least}"
        raise Refused(
            desired.name, "configure its PVRDMA card", said, f"upgrade the hardware of {machine.name}, powered off"
        )


def refuse_removed(desired: WorkerSpec, after: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Refuse a PVRDMA card with RoCE version 1 on a host that no longer supports it."""
    card, version = after.get(RDMA), host.get(VERSION)
    if desired[RDMA] is None or not card or card["protocol"] != ROCE_V1 or has_roce_v1(version):
        return
    said = f"{host['name']} runs ESX {version}, and 9.0 removed RoCE version 1"
    raise Refused(desired.name, f"configure its PVRDMA card with {ROCE_V1}", said, f"set protocol: {PROTOCOL}")


def change(spec: Any, after: Mapping[str, Any], machine: Machine, networks: Networks, new_key: Iterator[int]) -> None:
    """Add the changes of the network cards to a ConfigSpec."""
    now = facts(machine, networks)
    rdma = rdma_cards(machine)
    for card, key, kind in (
        (management_card(machine), MANAGEMENT, vim.vm.device.VirtualVmxnet3),
        (rdma[0] if rdma else None, RDMA, vim.vm.device.VirtualVmxnet3Vrdma),
    ):
        desired = after.get(key)
        if desired is None or desired == now[key]:
            continue
        changed = _card(card or kind(key=next(new_key)), desired, now[key] or {}, networks)
        operation = "edit" if card else "add"
        spec.deviceChange.append(vim.vm.device.VirtualDeviceSpec(operation=operation, device=changed))
    for card in rdma[1:] if after.get("rdma_nics") == 1 else []:
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
    return {
        "portgroup": networks.name_of(card.backing),
        "mac": str(card.macAddress or "").lower() or None,
        "connected": bool(link is None or link.startConnected),
    }


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
