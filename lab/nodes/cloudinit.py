# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What cloud-init's metadata and user data make of a node, as far as the collection says it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.nodes.network import MANAGEMENT, RDMA, Card, address_for

METADATA, USERDATA = "guestinfo.metadata", "guestinfo.userdata"
HEADER = "#cloud-config\n"
DEFAULT_USER = "debian"
SUDO = "ALL=(ALL) NOPASSWD:ALL"


@dataclass(frozen=True)
class User:
    """Somebody who may log in."""

    name: str
    keys: tuple[str, ...] = ()
    sudo: str | None = SUDO
    shell: str = "/bin/bash"


@dataclass(frozen=True)
class Guest:
    """A node as it should be when it runs; ``key`` is what its owner calls it, and never changes.

    ``told`` are the advanced settings from which that was read, for guests that read them by themselves.
    """

    key: str
    name: str
    hostname: str
    users: tuple[User, ...]
    cards: tuple[Card, ...]
    told: Mapping[str, str] = field(default_factory=dict, compare=False)


def guest(key: str, name: str, extra: Mapping[str, str]) -> Guest:
    """What a virtual machine's advanced settings ask for; without any, a node that has an address and a name."""
    metadata, userdata = _read(extra, METADATA), _read(extra, USERDATA)
    host_name = str(metadata.get("local-hostname") or userdata.get("hostname") or name)
    ethernets = metadata.get("network", {}).get("ethernets", {})
    cards = tuple(_card(network, ethernets[network]) for network in (MANAGEMENT, RDMA) if network in ethernets)
    if not cards or cards[0].network != MANAGEMENT:
        cards = (Card(MANAGEMENT, address_for(key)), *cards)
    return Guest(key, name, host_name, _users(userdata), cards, dict(extra))


def _read(extra: Mapping[str, str], key: str) -> dict[str, Any]:
    text = extra.get(key, "")
    if text and extra.get(f"{key}.encoding") == "base64":
        text = base64.b64decode(text).decode()
    return dict(json.loads(text.removeprefix(HEADER))) if text else {}


def _card(network: str, told: Mapping[str, Any]) -> Card:
    address = told.get("addresses", [None])[0]
    gateway = next((route["via"] for route in told.get("routes", []) if route["to"] in {"0.0.0.0/0", "default"}), None)
    return Card(network, told["match"]["macaddress"], address, int(told.get("mtu", 1500)), gateway)


def _users(userdata: Mapping[str, Any]) -> tuple[User, ...]:
    keys = tuple(userdata.get("ssh_authorized_keys", ()))
    users = []
    for told in userdata.get("users", ["default"]):
        if told == "default":
            users.append(User(DEFAULT_USER, keys))
        else:
            own = tuple(told.get("ssh_authorized_keys", ()))
            users.append(User(told["name"], own, told.get("sudo"), told.get("shell", "/bin/bash")))
    return tuple(users)
