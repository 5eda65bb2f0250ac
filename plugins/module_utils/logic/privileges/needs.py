# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Which privileges the modules need, by the calls that they make."""

from __future__ import annotations

import re
from typing import Any, Iterable

from .table import ALWAYS, CALLS, FREE, MODULES, Need

__all__ = ["ALWAYS", "Need", "calls_of", "is_free", "is_known", "modules", "needs_of", "of_modules", "rows", "table"]


def modules() -> set[str]:
    """Every module (and the inventory plugin) that talks to vCenter."""
    return set(MODULES)


def calls_of(module: str) -> tuple[str, ...]:
    """The calls of one module that need more than every role has."""
    return MODULES[module]


def is_free(call: str) -> bool:
    """Whether a call needs no more than every role has."""
    return any(re.fullmatch(pattern, call.rsplit(".", maxsplit=1)[-1]) for pattern in FREE)


def is_known(call: str) -> bool:
    """Whether the privileges of a call are written down."""
    return call in CALLS


def needs_of(call: str, module: str) -> tuple[Need, ...]:
    """What one call needs when this module makes it."""
    return tuple(need for need in CALLS[call] if not need.only or module in need.only)


def of_modules(names: Iterable[str]) -> list[str]:
    """The privileges of a role for these modules, sorted; what every role has is not among them."""
    return sorted({need.privilege for name in names for call in MODULES[name] for need in needs_of(call, name)})


def rows() -> list[tuple[str, str, str, str, str]]:
    """Privilege, object, module, call and source of each need, sorted."""
    return sorted(
        (need.privilege, need.on, name, call, need.source)
        for name, calls in MODULES.items()
        for call in calls
        for need in needs_of(call, name)
    )


def table(names: Iterable[str]) -> list[dict[str, Any]]:
    """Each privilege that these modules need, with the objects and the modules."""
    here = set(names)
    mine = [row for row in rows() if row[2] in here]
    return [
        {
            "privilege": privilege,
            "objects": sorted({on for one, on, *_rest in mine if one == privilege}),
            "modules": sorted({module for one, _on, module, *_rest in mine if one == privilege}),
        }
        for privilege in sorted({row[0] for row in mine})
    ]
