# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a machine tells its guest's cloud-init: the words of vCenter as they are, and the lab's own besides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lab.nodes.cloudinit import HEADER, METADATA, USERDATA, Guest, User
from lab.nodes.network import Card

VENDORDATA = "guestinfo.vendordata"


def settings(guest: Guest, asked: Mapping[str, str], files: Mapping[str, str], mounts: Sequence[str]) -> dict[str, str]:
    """The advanced settings that the guest reads: those that are ``asked``, and what they leave open.

    ``files`` by their path are what the guest must know of this lab, ``mounts`` are where its further disks belong:
    both are vendor data, which the words of a user would overrule.
    """
    told = {key: value for key, value in asked.items() if key.startswith("guestinfo.")}
    told.setdefault(METADATA, json.dumps(_metadata(guest)))
    told.setdefault(USERDATA, HEADER + json.dumps({"users": [_user(user) for user in guest.users]}))
    told[VENDORDATA] = HEADER + json.dumps(_vendor(files, mounts))
    return told


def _metadata(guest: Guest) -> dict[str, Any]:
    ethernets = {card.network: _card(card) for card in guest.cards}
    digest = hashlib.sha256(json.dumps(ethernets, sort_keys=True).encode()).hexdigest()[:12]
    network = {"version": 2, "ethernets": ethernets}
    return {"instance-id": f"{guest.name}-{digest}", "local-hostname": guest.hostname, "network": network}


def _card(card: Card) -> dict[str, Any]:
    told: dict[str, Any] = {"match": {"macaddress": card.mac}, "dhcp4": False, "mtu": card.mtu}
    if card.address:
        told["addresses"] = [card.address]
    if card.gateway:
        told["routes"] = [{"to": "0.0.0.0/0", "via": card.gateway}]
    return told


def _user(user: User) -> dict[str, Any]:
    told = {"name": user.name, "shell": user.shell, "ssh_authorized_keys": list(user.keys), "lock_passwd": True}
    return {**told, "sudo": user.sudo} if user.sudo else told


def _vendor(files: Mapping[str, str], mounts: Sequence[str]) -> dict[str, Any]:
    disks = [[f"/dev/vd{chr(ord('b') + number)}", there, "ext4", "ro,noload"] for number, there in enumerate(mounts)]
    written = [{"path": path, "content": text} for path, text in sorted(files.items())]
    # By cloud-init's own schema neither is ever empty.
    return {key: told for key, told in (("write_files", written), ("mounts", disks)) if told}
