"""The cloud-init data of a worker's guest: host name, addresses, users and SSH keys."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from ..errors import Refused
from ..plan import State
from .nics import MANAGEMENT, RDMA
from .worker_spec import WorkerSpec

METADATA, USERDATA = "guestinfo.metadata", "guestinfo.userdata"
ENCODING = ".encoding"
HEADER = "#cloud-config\n"
DHCP = "dhcp"
JUMBO = 9000
ADDRESSING = ("address", "gateway", "dns", "rdma_addresses")


def facts(extra: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the current cloud-init data; None if there is no data."""
    if not extra.get(METADATA) and not extra.get(USERDATA):
        return None
    return {"metadata": _decode(extra, METADATA), "userdata": _decode(extra, USERDATA)}


def desired_data(desired: WorkerSpec, after: State) -> dict[str, Any] | None:
    """Return the desired cloud-init data; ``after`` contains the planned network cards, in the order of the options."""
    guest = desired["guest"]
    if guest is None:
        return None
    host_name = guest.get("hostname") or desired.name
    metadata: dict[str, Any] = {"local-hostname": host_name, **_network(desired, guest, after)}
    users = [{"name": guest["user"], "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash"}] if "user" in guest else []
    # localhost adds only the name of the guest; true would write the whole file at each boot, without the peers.
    userdata: dict[str, Any] = {"hostname": host_name, "manage_etc_hosts": "localhost"}
    if guest.get("ssh_keys"):
        keys = {"ssh_authorized_keys": list(guest["ssh_keys"])}
        userdata.update({"users": ["default", {**users[0], **keys}]} if users else keys)
    elif users:
        userdata["users"] = ["default", *users]
    data = {"metadata": metadata, "userdata": userdata}
    # cloud-init runs once for each instance id, so new data needs a new id.
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]
    return {**data, "metadata": {"instance-id": f"{desired.name}-{digest}", **metadata}}


def guestinfo_options(data: Mapping[str, object]) -> dict[str, str]:
    """Return the advanced settings with the data as JSON, which cloud-init reads as YAML."""
    texts = {METADATA: json.dumps(data["metadata"], sort_keys=True)}
    texts[USERDATA] = HEADER + json.dumps(data["userdata"], sort_keys=True)
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {**encoded, **{f"{key}{ENCODING}": "base64" for key in texts}}


def _network(desired: WorkerSpec, guest: Mapping[str, Any], after: State) -> dict[str, Any]:
    """Return the network configuration for the requested cards; without cards, the template's configuration stays."""
    if desired[MANAGEMENT] is None:
        if requested := [key for key in ADDRESSING if guest.get(key)]:
            reason = "management_nic is not set, so the MAC address of the card is unknown"
            raise Refused(
                desired.name, f"set {', '.join(requested)} in its guest", reason, "set management_nic as well"
            )
        return {}
    cards = {"management": _card(desired, after[MANAGEMENT]["mac"], guest.get("address") or DHCP)}
    if guest.get("gateway"):
        # A default route for IPv4 has no gateway with an IPv6 address.
        everywhere = "::/0" if ":" in guest["gateway"] else "0.0.0.0/0"
        cards["management"]["routes"] = [{"to": everywhere, "via": guest["gateway"]}]
    if guest.get("dns"):
        cards["management"]["nameservers"] = {"addresses": list(guest["dns"])}
    cards.update(_rdma_cards(desired, guest, after))
    return {"network": {"version": 2, "ethernets": cards}}


def _rdma_cards(desired: WorkerSpec, guest: Mapping[str, Any], after: State) -> dict[str, Any]:
    addresses, nics = guest.get("rdma_addresses") or [], desired[RDMA] or []
    if not addresses:
        return {}
    if len(addresses) != len(nics):
        reason = f"rdma_addresses has {len(addresses)} entries and rdma_nics has {len(nics)}"
        raise Refused(desired.name, "set its RDMA addresses", reason, "name one address for each NIC")
    mtu = guest.get("rdma_mtu") or JUMBO
    named = enumerate(zip(after[RDMA], addresses))
    return {f"rdma{number}": {**_card(desired, nic["mac"], address), "mtu": mtu} for number, (nic, address) in named}


def _card(desired: WorkerSpec, mac: str, address: str) -> dict[str, Any]:
    match = {"match": {"macaddress": mac}}
    if address == DHCP:
        return {**match, "dhcp4": True}
    try:
        ipaddress.ip_interface(address)
    except ValueError as error:
        raise Refused(desired.name, "set its address", str(error), "write it as 10.0.0.11/24, or dhcp") from error
    if "/" not in address:
        raise Refused(desired.name, "set its address", f"{address} has no prefix length", f"write it as {address}/24")
    return {**match, "dhcp4": False, "addresses": [address]}


def _decode(extra: Mapping[str, str], key: str) -> Any:
    """Return the decoded data that this collection wrote; for any other data, only the length."""
    text = extra.get(key, "")
    try:
        plain = base64.b64decode(text).decode() if extra.get(f"{key}{ENCODING}") == "base64" else text
        return json.loads(plain.removeprefix(HEADER)) if plain else None
    except (ValueError, RecursionError):
        return f"{len(text)} characters that this collection did not write"
