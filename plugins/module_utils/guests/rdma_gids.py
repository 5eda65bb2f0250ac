# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The GID of an RDMA device that stands for an address: its index is found, never assumed."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

ACTIVE = "4:"  # the kernel's "4: ACTIVE"


def choose(rows: Sequence[Mapping[str, Any]], kind: str, address: str = "") -> list[dict[str, Any]]:
    """The GIDs of one type with an IPv4 address in active ports; those of ``address`` alone where it is given."""
    found = []
    for row in rows:
        mapped = ipaddress.IPv6Address(row["gid"]).ipv4_mapped
        if mapped is None or row["type"] != kind or not str(row["state"]).startswith(ACTIVE):
            continue
        if not address or str(mapped) == address:
            found.append({**row, "address": str(mapped)})
    return found


def misfits(rows: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> list[str]:
    """A sentence if there is no device, more or less than one GID, or a card whose MTU is too small.

    Keys of ``wanted`` are ``type``, ``address``, ``mtu`` and ``driver``.
    """
    if not rows:
        return [
            f"No device was found: check that the VM has an RDMA card and that the driver {wanted['driver']} is loaded."
        ]
    gids, address = choose(rows, wanted["type"], wanted["address"]), wanted["address"]
    if len(gids) != 1:
        of_address = f" with the address {address}" if address else ""
        return [
            f"{len(gids)} GIDs in active ports are of type {wanted['type']}{of_address}; there must be exactly one."
        ]
    card, mtu = gids[0]["card"], gids[0]["mtu"]
    return [f"The MTU of {card} is {mtu}, less than {wanted['mtu']}."] if mtu < int(wanted["mtu"]) else []
