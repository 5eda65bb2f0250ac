"""Builds the cloud-init settings of a guest: vCenter's settings unchanged, plus the lab's vendor data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from lab.nodes.cloudinit import HEADER, METADATA, NETWORKS, USERDATA, Guest, User
from lab.nodes.network import Card

VENDORDATA = "guestinfo.vendordata"


def settings(
    guest: Guest, requested: Mapping[str, str], files: Mapping[str, str], mounts: Sequence[str]
) -> dict[str, str]:
    """Return the advanced settings that the guest reads: those in ``asked``, and defaults for missing ones.

    ``files`` are the lab's files by path, ``mounts`` the mount points of further disks. Both become vendor data, which
    user data overrides.
    """
    chosen = {key: value for key, value in requested.items() if key.startswith("guestinfo.")}
    chosen.setdefault(METADATA, json.dumps(_metadata(guest)))
    chosen.setdefault(USERDATA, HEADER + json.dumps({"users": [_user(user) for user in guest.users]}))
    chosen[VENDORDATA] = HEADER + json.dumps(_vendor(files, mounts))
    return chosen


def _metadata(guest: Guest) -> dict[str, Any]:
    keys = {network: key for key, network in NETWORKS.items()}
    ethernets = {keys[card.network]: _card(card) for card in guest.cards}
    digest = hashlib.sha256(json.dumps(ethernets, sort_keys=True).encode()).hexdigest()[:12]
    network = {"version": 2, "ethernets": ethernets}
    return {"instance-id": f"{guest.name}-{digest}", "local-hostname": guest.hostname, "network": network}


def _card(card: Card) -> dict[str, Any]:
    ethernet: dict[str, Any] = {"match": {"macaddress": card.mac}, "dhcp4": False, "mtu": card.mtu}
    if card.address:
        ethernet["addresses"] = [card.address]
    if card.gateway:
        ethernet["routes"] = [{"to": "0.0.0.0/0", "via": card.gateway}]
    return ethernet


def _user(user: User) -> dict[str, Any]:
    entry = {"name": user.name, "shell": user.shell, "ssh_authorized_keys": list(user.keys), "lock_passwd": True}
    return {**entry, "sudo": user.sudo} if user.sudo else entry


def _vendor(files: Mapping[str, str], mounts: Sequence[str]) -> dict[str, Any]:
    disks = [[f"/dev/vd{chr(ord('b') + number)}", there, "ext4", "ro,noload"] for number, there in enumerate(mounts)]
    written = [{"path": path, "content": text} for path, text in sorted(files.items())]
    # cloud-init's schema does not allow either list to be empty.
    return {key: entries for key, entries in (("write_files", written), ("mounts", disks)) if entries}
