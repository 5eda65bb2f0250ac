# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Pings between the vmkernel adapters of a fabric, sent by the hosts themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..errors import CollectionError
from ..vsphere.inventory import Host

COUNT = 3
# IPv4 and ICMP headers: what is left of the MTU is the payload, and it must arrive in one piece.
HEADERS = 28
PARALLEL = 16


@dataclass(frozen=True)
class Pair:
    """One adapter that pings another."""

    port_group: str
    host: str
    device: str
    peer: str
    address: str
    size: int


def pairs(adapters: Mapping[str, Mapping[str, Mapping[str, Any]]], port_groups: Sequence[str]) -> list[Pair]:
    """The pings on each port group, from every host to the next one and from the last to the first.

    A host without connection is in two of them.
    """
    found = []
    for group in port_groups:
        endpoints = [
            (host, some[group]) for host, some in sorted(adapters.items()) if some.get(group, {}).get("address")
        ]
        for (host, one), (peer, other) in zip(endpoints, [*endpoints[1:], *endpoints[:1]]):
            if host != peer:
                size = min(one["mtu"], other["mtu"]) - HEADERS
                found.append(Pair(group, host, one["device"], peer, other["address"], size))
    return found


def ping(hosts: Mapping[str, Host], wanted: Sequence[Pair]) -> list[dict[str, Any]]:
    """The answers of all pings, sent at once."""
    if not wanted:
        return []
    _primed = hosts[wanted[0].host].esxcli  # pyVmomi is taught the types of esxcli once, not by two threads at a time
    with ThreadPoolExecutor(max_workers=min(PARALLEL, len(wanted))) as pool:
        return list(pool.map(lambda one: _ask(hosts[one.host], one), wanted))


def error(cluster: str, switch: str, answers: Sequence[Mapping[str, Any]]) -> str:
    """Return the pings without all answers as one error; empty if every ping was answered."""
    lost = "; ".join(one["text"] for one in answers if not one["reached"])
    what = f"{cluster}: not all hosts reach each other over switch {switch}: {lost}"
    return f"{what}; check VLAN and MTU of the physical switch" if lost else ""


def _ask(host: Host, one: Pair) -> dict[str, Any]:
    addressed = {
        "port_group": one.port_group,
        "host": one.host,
        "device": one.device,
        "peer": one.peer,
        "address": one.address,
        "size": one.size,
    }
    options: dict[str, Any] = {
        "count": COUNT,
        "df": True,
        "host": one.address,
        "interface": one.device,
        "size": one.size,
    }
    try:
        answer = host.esxcli.run("network diag ping", tried=f"ping {one.address} of {one.peer}", **options)
    except CollectionError as error:
        counted = {"sent": COUNT, "received": 0, "reached": False, "said": str(error)}
    else:
        counted = _counted(answer)
    return {**addressed, **counted, "text": _text(addressed, counted)}


def _counted(answer: Any) -> dict[str, Any]:
    """The counts of an answer; ESXi misspells one of them, and may correct that one day."""
    summary = answer.get("Summary", {}) if isinstance(answer, dict) else {}
    sent = int(summary.get("Transmitted", 0))
    received = int(summary.get("Recieved", summary.get("Received", 0)))
    cause = "" if received else "no answer"
    return {"sent": sent, "received": received, "reached": 0 < sent <= received, "said": cause}


def _text(asked: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """A ping as one line to show."""
    way = f"{asked['device']} of {asked['host']} -> {asked['peer']} ({asked['address']}), {asked['size']} bytes"
    counts = f"{answer['received']} of {answer['sent']} answered"
    return f"{way}: {counts}" if answer["reached"] else f"{way}: {counts} ({answer['said'] or 'some were lost'})"
