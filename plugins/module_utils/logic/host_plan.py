# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plan of a cluster, as lines to read and as the list of hosts to work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

OUT_OF_SERVICE = {"maintenance", "reboot", "power_off"}


def lines(hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """One line for each host: what it needs, how often it must boot, and why."""
    return [_line(host) for host in hosts]


def _line(host: Mapping[str, Any]) -> str:
    if host.get("failed"):
        return str(host["msg"])
    if not _has_work(host):
        return f"{host['host']}: in force, nothing to do"
    boots = host.get("reboots", 0)
    booting = "no reboot" if not boots else "1 reboot" if boots == 1 else f"{boots} reboots"
    where = "out of service" if leaves_service(host) else "in service"
    reasons = f" ({'; '.join(host['why'])})" if host.get("why") else ""
    return f"{host['host']}: changes {where}, {booting}{reasons}"


def to_do(hosts: Iterable[Mapping[str, Any]], canary: str = "", go_on: bool = False) -> list[dict[str, Any]]:
    """The hosts that need work, those already out of service first; with a canary only it, until ``go_on``."""
    work = [
        {"host": host["host"], "reboots": host.get("reboots", 0), "leaves_service": leaves_service(host)}
        for host in hosts
        if _has_work(host)
    ]
    if canary and not go_on:
        return [entry for entry in work if entry["host"] == canary]
    return sorted(work, key=lambda entry: entry["host"] != canary)


def leaves_service(host: Mapping[str, Any]) -> bool:
    """Whether a host must be emptied for what it needs."""
    return bool(OUT_OF_SERVICE & set(host.get("needs", [])))


def _has_work(host: Mapping[str, Any]) -> bool:
    return bool(host.get("changed") or host.get("needs"))
