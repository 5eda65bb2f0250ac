# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The answer of a rule of fit, and the tables in which rules find their facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Stack = Mapping[str, Any]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """A pair that does not fit, or one of which no source says whether it fits."""

    sentence: str
    misfit: bool


def misfit(sentence: str, source: str) -> Finding:
    """A pair that a source says does not fit."""
    return Finding(f"{sentence}. Source: {source}", True)


def unknown(pair: str) -> Finding:
    """A pair of which no source says whether it fits."""
    return Finding(f"Not established: {pair}.", False)


def row(facts: Facts, table: str, key: str, value: str) -> Mapping[str, Any] | None:
    """The row of a table in which a key has a value, with the source of the table unless it has its own."""
    for candidate in facts[table]["rows"]:
        if candidate[key] == value:
            return {"source": facts[table].get("source"), **candidate}
    return None
