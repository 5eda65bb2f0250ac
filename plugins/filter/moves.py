# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for readings of the nodes of a job whose workers move."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible_collections.dml.vsphere.plugins.module_utils.training.transport import connections
from ansible_collections.dml.vsphere.plugins.module_utils.vmotion.checks import node_findings

TABLE = Path(__file__).resolve().parents[2] / "stacks" / "facts" / "compatibility.yml"


def transport_of(
    looks: list[dict[str, Any]],
    at: dict[str, str],
    usual: dict[str, Any] | None = None,
    rdma: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the transport of each node between two readings, each with ``nodes`` and, if they were read, ``hosts``."""
    first, second = looks
    hosts = (first.get("hosts") or [], second.get("hosts") or [])
    return dict(connections.judge(first["nodes"], second["nodes"], hosts=hosts, at=at, rdma=rdma, usual=usual))


def guest_findings(
    nodes: dict[str, Any],
    budget: float,
    lasts: float = 0.0,
    minutes: float = 0.0,
    hosts: list[dict[str, Any]] | None = None,
) -> Any:
    """Return the findings in some nodes that forbid a stun, as plain data."""
    table = DataLoader().load_from_file(str(TABLE))
    given = {"lasts": float(lasts), "minutes": float(minutes)}
    return node_findings.findings(nodes, float(budget), time.time(), (hosts or [], table), **given)


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"guest_findings": guest_findings, "transport_seen": transport_of}
