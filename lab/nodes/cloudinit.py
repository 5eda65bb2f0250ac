"""Parses the part of cloud-init's metadata and user data that the collection writes."""

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
# The lab's networks by the name of their card in the metadata; a node has one card for RDMA.
NETWORKS = {"management": MANAGEMENT, "rdma0": RDMA}


@dataclass(frozen=True)
class User:
    """A user who may log in."""

    name: str
    keys: tuple[str, ...] = ()
    sudo: str | None = SUDO
    shell: str = "/bin/bash"


@dataclass(frozen=True)
class Guest:
    """The desired state of a running node; ``key`` is its owner's id for it, and never changes.

    ``extra_config`` has the advanced settings from which this was read, for guests that read them themselves.
    """

    key: str
    name: str
    hostname: str
    users: tuple[User, ...]
    cards: tuple[Card, ...]
    extra_config: Mapping[str, str] = field(default_factory=dict, compare=False)


def guest(key: str, name: str, extra: Mapping[str, str]) -> Guest:
    """Return the guest that a virtual machine's advanced settings describe; by default, one with a name and address."""
    metadata, userdata = _read(extra, METADATA), _read(extra, USERDATA)
    host_name = str(metadata.get("local-hostname") or userdata.get("hostname") or name)
    ethernets = metadata.get("network", {}).get("ethernets", {})
    cards = tuple(_card(network, ethernets[key]) for key, network in NETWORKS.items() if key in ethernets)
    if not cards or cards[0].network != MANAGEMENT:
        cards = (Card(MANAGEMENT, address_for(key)), *cards)
    return Guest(key, name, host_name, _users(userdata), cards, dict(extra))


def _read(extra: Mapping[str, str], key: str) -> dict[str, Any]:
    text = extra.get(key, "")
    if text and extra.get(f"{key}.encoding") == "base64":
        text = base64.b64decode(text).decode()
    return dict(json.loads(text.removeprefix(HEADER))) if text else {}


def _card(network: str, ethernet: Mapping[str, Any]) -> Card:
    address, routes = ethernet.get("addresses", [None])[0], ethernet.get("routes", [])
    gateway = next((route["via"] for route in routes if route["to"] in {"0.0.0.0/0", "default"}), None)
    return Card(network, ethernet["match"]["macaddress"], address, int(ethernet.get("mtu", 1500)), gateway)


def _users(userdata: Mapping[str, Any]) -> tuple[User, ...]:
    keys = tuple(userdata.get("ssh_authorized_keys", ()))
    users = []
    for user in userdata.get("users", ["default"]):
        if user == "default":
            users.append(User(DEFAULT_USER, keys))
        else:
            own = tuple(user.get("ssh_authorized_keys", ()))
            users.append(User(user["name"], own, user.get("sudo"), user.get("shell", "/bin/bash")))
    return tuple(users)
