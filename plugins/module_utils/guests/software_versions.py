# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Versions of software on each node: one table, and the differences between nodes, which no job may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NONE = "-"


def collect(local_facts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The versions of each node, from ``versions`` in the local facts of its proofs."""
    return {
        node: {
            str(what): str(version)
            for name in sorted(proofs or {})
            if name.startswith("dml_") and isinstance(proofs[name], Mapping)
            for what, version in (proofs[name].get("versions") or {}).items()
        }
        for node, proofs in local_facts.items()
    }


def table(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The lines of a table with one line for each node."""
    kinds = _kinds(nodes.values())
    rows = [["node", *kinds], *([node, *(told.get(kind, NONE) for kind in kinds)] for node, told in nodes.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def differences(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A sentence for each kind of version that differs between nodes."""
    sentences = []
    for kind in _kinds(nodes.values()):
        by_version: dict[str, list[str]] = {}
        for node, told in nodes.items():
            by_version.setdefault(told.get(kind, "missing"), []).append(node)
        if len(by_version) > 1:
            parts = [f"{version} on {', '.join(there)}" for version, there in by_version.items()]
            sentences.append(f"{kind} is {' and '.join(parts)}.")
    return sentences


def _kinds(told: Iterable[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(kind for versions in told for kind in versions))
