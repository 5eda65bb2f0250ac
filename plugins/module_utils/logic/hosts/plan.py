# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plan of a cluster, as lines to read and as the list of hosts to work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import findings

OUT_OF_SERVICE = {"maintenance", "reboot", "power_off"}


def left_out(hosts: Iterable[Mapping[str, Any]], left: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The plans, with a need to go back into service for the hosts that an earlier run of ours left out of it."""
    waiting = {one["host"] for one in left if one.get("changed")}
    return [_to_give_back(host) if host["host"] in waiting else dict(host) for host in hosts]


def _to_give_back(host: Mapping[str, Any]) -> dict[str, Any]:
    why = "an earlier run of this collection left it in maintenance mode"
    more = {"needs": [*host.get("needs", []), "maintenance"], "why": [*host.get("why", []), why]}
    return {**host, **more, "left_out": True}


def lines(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the hosts need, how often each must boot, and why; hosts with the same plan share their lines."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        shared.setdefault(_needs(host), []).append(host["host"])
    return [line for needs, names in shared.items() for line in (f"{', '.join(names)}: {needs[0]}", *needs[1:])]


def _needs(host: Mapping[str, Any]) -> tuple[str, ...]:
    if host.get("failed"):
        message, prefix = str(host["msg"]), f"{host['host']}: "
        # Spelled out because workers may run Python 3.8, which has no removeprefix.
        return (message[len(prefix) :] if message.startswith(prefix) else message,)
    if not _has_work(host):
        return ("in force, nothing to do",)
    boots = host.get("reboots", 0)
    booting = "no reboot" if not boots else "1 reboot" if boots == 1 else f"{boots} reboots"
    where = "out of service" if leaves_service(host) else "in service"
    return (f"changes {where}, {booting}", *(f"    because {reason}" for reason in host.get("why") or []))


def to_do(hosts: Iterable[Mapping[str, Any]], canary: str = "", go_on: bool = False) -> list[dict[str, Any]]:
    """The hosts that need work, those already out of service first; with a canary only it, until ``go_on``.

    A host that is out of service takes the place of another one, so that nothing could go on before it is back.
    """
    work = [
        {"host": host["host"], "reboots": host.get("reboots", 0), "leaves_service": leaves_service(host)}
        for host in sorted(hosts, key=lambda host: (not host.get("left_out"), host["host"] != canary))
        if _has_work(host)
    ]
    if canary and not go_on:
        return [entry for entry in work if entry["host"] == canary]
    return work


def why_failed(result: Mapping[str, Any], accepted: Sequence[str] = ()) -> str:
    """The message of a failed task, or the stop rules that it hit, or what is not in force after all."""
    stops = [stop["text"].rstrip(".") for stop in findings.stops(result.get("stops", []), accepted)]
    said = [str(result["msg"]).rstrip(".")] if result.get("msg") else []
    return "; ".join(stops or said or not_in_force(result.get("hosts", []))) or "it said nothing"


def not_in_force(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each host that was changed and yet is not as it should be."""
    return [
        f"{host['host']}: could not bring its profile into force: it was changed and booted as planned, yet "
        f"{'; '.join(host.get('why') or ()) or 'it differs'}; look at the host's log and run again"
        for host in hosts
        if _has_work(host)
    ]


def leaves_service(host: Mapping[str, Any]) -> bool:
    """Whether a host must be emptied for what it needs."""
    return bool(OUT_OF_SERVICE & set(host.get("needs", [])))


def _has_work(host: Mapping[str, Any]) -> bool:
    return bool(host.get("changed") or host.get("needs"))
