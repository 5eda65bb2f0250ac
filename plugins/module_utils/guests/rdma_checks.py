# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The GIDs of a node's RDMA devices, and the bandwidth that ib_write_bw measures between two nodes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

ACTIVE = "4:"  # the kernel's "4: ACTIVE"
# Bytes, iterations, peak, average, messages per second: the row below the heading that names gigabits.
ROW = re.compile(r"^[ \t]*\d+[ \t]+\d+[ \t]+[\d.]+[ \t]+(?P<average>[\d.]+)[ \t]+[\d.]+\s*$", re.MULTILINE)
HEADING = re.compile(r"BW average\[Gb/sec\]")
# The program wrote all data but could not determine the processor's frequency, which it reports on stderr.
UNMEASURED = re.compile(r"^[ \t]*\d+[ \t]+\d+(?:[ \t]+0\.0+){3}\s*$", re.MULTILINE)


def usable_gids(rows: Sequence[Mapping[str, Any]], kind: str, addresses: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the GIDs of one type in active ports: those of the IPv4 addresses in their order, or without any, all."""
    gids = []
    for row in rows:
        mapped = ipaddress.IPv6Address(row["gid"]).ipv4_mapped
        if mapped is None or row["type"] != kind or not str(row["state"]).startswith(ACTIVE):
            continue
        gids.append({**row, "address": str(mapped)})
    return [gid for address in addresses for gid in gids if gid["address"] == address] if addresses else gids


def gid_misfits(rows: Sequence[Mapping[str, Any]], desired: Mapping[str, Any]) -> list[str]:
    """Return sentences if there is no device, not exactly one GID per address, or a card whose MTU is too small.

    The keys of ``desired`` are ``type``, ``addresses``, ``mtu`` and ``driver``.
    """
    if not rows:
        return [
            f"No device was found: check that the VM has an RDMA card and the driver {desired['driver']} is loaded."
        ]
    sentences = []
    for address in desired["addresses"] or [""]:
        gids = usable_gids(rows, desired["type"], [address] if address else [])
        if len(gids) != 1:
            of_address = f" with the address {address}" if address else ""
            text = f"{len(gids)} GIDs in active ports are of type {desired['type']}{of_address}"
            sentences.append(f"{text}; there must be exactly one.")
        elif gids[0]["mtu"] < int(desired["mtu"]):
            sentences.append(f"The MTU of {gids[0]['card']} is {gids[0]['mtu']}, less than {desired['mtu']}.")
    return sentences


def average_gbits(output: str) -> float | None:
    """Return the average in gigabits per second; None if the program measured nothing, or used other units."""
    rows = ROW.findall(output) if HEADING.search(output) and not UNMEASURED.search(output) else []
    return float(rows[-1]) if rows else None


def bandwidth_misfits(pairs: Sequence[Mapping[str, Any]], least: float) -> list[str]:
    """Return a sentence for each pair of nodes, ``{"from", "to", "output"}``, whose bandwidth is missing or low."""
    sentences = []
    for pair in pairs:
        gbits = average_gbits(pair["output"])
        way = f"ib_write_bw from {pair['from']} to {pair['to']}"
        if UNMEASURED.search(pair["output"]):
            sentences += [_unmeasured(way, str(pair.get("error") or ""))] if least else []
        elif gbits is None:
            output = (str(pair.get("error") or pair["output"]).strip() or "it printed nothing")[-400:]
            sentences.append(f"{way} measured nothing: {output}")
        elif gbits <= 0 or gbits < least:
            sentences.append(f"{way} measured {gbits:g} Gbit/s, less than {least:g}.")
    return sentences


def _unmeasured(way: str, error: str) -> str:
    reason = next((line.strip() for line in error.splitlines() if "orrelation" in line), "no reason was printed")
    return (
        f"{way} wrote all data but could not measure the bandwidth with the processor's clock ({reason}): run it again."
    )
