# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Rulesets of a host's firewall: read, opened and closed; whom they let in is never touched."""

from __future__ import annotations

from typing import Any

from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host

MANAGER = "configManager.firewallSystem"


def path(ruleset: str) -> str:
    """The property that holds one ruleset."""
    return f'config.firewall.ruleset["{ruleset}"]'


def state(host: Host, ruleset: str) -> dict[str, Any] | None:
    """Whether a ruleset is open, and to whom (empty means to all); None where the host has no such ruleset."""
    rules = host[path(ruleset)]
    if rules is None:
        return None
    return {"open": bool(rules.enabled), "allowed": _allowed(rules.allowedHosts)}


def switch(host: Host, ruleset: str, *, to_open: bool) -> None:
    """Open or close a ruleset; whom it lets in stays as it is."""
    system = host[MANAGER]
    change = system.EnableRuleset if to_open else system.DisableRuleset
    with translating_faults(host.name, f"{'open' if to_open else 'close'} the firewall ruleset {ruleset}"):
        change(ruleset)


def _allowed(hosts: Any) -> list[str]:
    if hosts is None or hosts.allIp:
        return []
    networks = [f"{one.network}/{one.prefixLength}" for one in hosts.ipNetwork or []]
    return sorted([*(hosts.ipAddress or []), *networks])
