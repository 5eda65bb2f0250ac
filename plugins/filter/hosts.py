# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for rolling changes of ESXi hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.dml.vsphere.plugins.module_utils.hosts.preflight import host_preflight
from ansible_collections.dml.vsphere.plugins.module_utils.maintenance import rolling_change


def host_refusals(
    hosts: list[dict[str, Any]],
    in_service: list[str] | None = None,
    left: list[dict[str, Any]] | None = None,
    accepted: list[str] | None = None,
) -> list[str]:
    """Return the errors of hosts that cannot be changed now: in service, or taken out of service by others."""
    staying = hosts if in_service is None else [host for host in hosts if host["host"] in in_service]
    return [*host_preflight.refusals(staying), *rolling_change.refusals(hosts, left or [], accepted or [])]


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "host_plan_lines": rolling_change.lines,
            "host_refusals": host_refusals,
            "hosts_to_do": rolling_change.to_do,
            "unknown_hosts": rolling_change.unknown_hosts,
            "why_failed": rolling_change.why_failed,
        }
