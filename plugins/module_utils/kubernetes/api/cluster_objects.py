# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What of a Kubernetes matters to a job whose nodes are moved: version, nodes, pods, budgets, configurations."""

from __future__ import annotations

from ..preflight import Site
from .connection import Api


def read(api: Api, configurations: bool) -> Site:
    """All of it, in one call for each kind of object; ConfigMaps only where configurations matter."""
    return Site(
        version=str((api.get("/version") or {}).get("gitVersion") or ""),
        nodes=api.items("/api/v1/nodes"),
        pods=api.items("/api/v1/pods"),
        budgets=api.items("/apis/policy/v1/poddisruptionbudgets"),
        config_maps=api.items("/api/v1/configmaps") if configurations else (),
    )
