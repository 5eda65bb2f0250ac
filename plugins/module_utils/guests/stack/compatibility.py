"""The issues that compatibility rules report, and the tables that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Stack = Mapping[str, Any]
CompatibilityTables = Mapping[str, Any]


@dataclass(frozen=True)
class CompatibilityIssue:
    """A pair of parts that is incompatible, or whose compatibility no source confirms."""

    sentence: str
    misfit: bool


def misfit(sentence: str, source: str) -> CompatibilityIssue:
    """Return an issue about a pair that is incompatible according to a source."""
    return CompatibilityIssue(f"{sentence}. Source: {source}", True)


def unknown(pair: str) -> CompatibilityIssue:
    """Return an issue about a pair whose compatibility no source confirms."""
    return CompatibilityIssue(f"Not established: {pair}.", False)


def row(facts: CompatibilityTables, table: str, key: str, value: str) -> Mapping[str, Any] | None:
    """Return the row with this value of a key, with the table's source unless it has one; None without a row."""
    for candidate in facts[table]["rows"]:
        if candidate[key] == value:
            return {"source": facts[table].get("source"), **candidate}
    return None
