"""Pings between the vmkernel adapters of a fabric, sent by the hosts themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..errors import CollectionError
from ..vsphere.inventory import Host

COUNT = 3
# IPv4 and ICMP headers: the rest of the MTU is the payload, which must arrive without fragmentation.
HEADERS = 28
PARALLEL = 16


@dataclass(frozen=True)
class Ping:
    """A ping from one adapter to another."""

    port_group: str
    host: str
    device: str
    peer: str
    address: str
    size: int


def pings_of_pairs(adapters: Mapping[str, Mapping[str, Mapping[str, Any]]], port_groups: Sequence[str]) -> list[Ping]:
    """Return the pings on each port group, one for each pair of hosts: its answer has the same size."""
    pings = []
    for group in port_groups:
        endpoints = [
            (host, some[group]) for host, some in sorted(adapters.items()) if some.get(group, {}).get("address")
        ]
        for (host, source), (peer, target) in combinations(endpoints, 2):
            size = min(source["mtu"], target["mtu"]) - HEADERS
            pings.append(Ping(group, host, source["device"], peer, target["address"], size))
    return pings


def send_pings(hosts: Mapping[str, Host], pings: Sequence[Ping]) -> list[dict[str, object]]:
    """Return the answers of all pings, which are sent at the same time."""
    if not pings:
        return []
    _primed = hosts[pings[0].host].esxcli  # one thread loads the types of esxcli into pyVmomi
    with ThreadPoolExecutor(max_workers=min(PARALLEL, len(pings))) as pool:
        return list(pool.map(lambda ping: _send(hosts[ping.host], ping), pings))


def reach_error(cluster: str, switch: str, answers: Sequence[Mapping[str, Any]]) -> str:
    """Return the pings without all answers as one error; empty if every ping was answered."""
    lost = "; ".join(answer["text"] for answer in answers if not answer["reached"])
    what = f"{cluster}: not all hosts reach each other over switch {switch}: {lost}"
    return f"{what}; check VLAN and MTU of the physical switch" if lost else ""


def _send(host: Host, ping: Ping) -> dict[str, object]:
    addressed = {
        "port_group": ping.port_group,
        "host": ping.host,
        "device": ping.device,
        "peer": ping.peer,
        "address": ping.address,
        "size": ping.size,
    }
    options: dict[str, Any] = {
        "count": COUNT,
        "df": True,
        "host": ping.address,
        "interface": ping.device,
        "size": ping.size,
    }
    try:
        answer = host.esxcli.run("network diag ping", tried=f"ping {ping.address} of {ping.peer}", **options)
    except CollectionError as error:
        counted = {"sent": COUNT, "received": 0, "reached": False, "said": str(error)}
    else:
        counted = _counted(answer)
    return {**addressed, **counted, "text": _text(addressed, counted)}


def _counted(answer: object) -> dict[str, object]:
    """Return the counts of an answer; ESXi misspells one of them, which a later version may correct."""
    summary = answer.get("Summary", {}) if isinstance(answer, dict) else {}
    sent = int(summary.get("Transmitted", 0))
    received = int(summary.get("Recieved", summary.get("Received", 0)))
    cause = "" if received else "no answer"
    return {"sent": sent, "received": received, "reached": 0 < sent <= received, "said": cause}


def _text(ping: Mapping[str, object], answer: Mapping[str, object]) -> str:
    way = f"{ping['device']} of {ping['host']} -> {ping['peer']} ({ping['address']}), {ping['size']} bytes"
    counts = f"{answer['received']} of {answer['sent']} answered"
    return f"{way}: {counts}" if answer["reached"] else f"{way}: {counts} ({answer['said'] or 'some were lost'})"
