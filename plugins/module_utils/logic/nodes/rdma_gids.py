# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Which GID of an RDMA device stands for an address: its index is found, never assumed."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

ACTIVE = "4:"  # the kernel's "4: ACTIVE"


def choose(rows: Sequence[Mapping[str, Any]], kind: str, address: str = "") -> list[dict[str, Any]]:
    """The GIDs of one kind, with an IPv4 address, in active ports; of one address where it is given."""
    found = []
    for row in rows:
        mapped = ipaddress.IPv6Address(row["gid"]).ipv4_mapped
        if mapped is None or row["type"] != kind or not str(row["state"]).startswith(ACTIVE):
            continue
        if not address or str(mapped) == address:
            found.append({**row, "address": str(mapped)})
    return found
