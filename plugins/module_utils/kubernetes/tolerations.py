# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""How long a pod stays on a node that is silent.

Kubernetes marks such a node with one of two taints, not-ready and unreachable, without a value. A pod stays as long as
the shortest of the tolerations that match a taint, and is deleted at once if none does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .parts import whole
from .pods import TAINTS

Object = Mapping[str, Any]


def tolerated_seconds(tolerations: Iterable[Object]) -> float | None:
    """Return the seconds that a pod stays under either taint; None if it stays without limit."""
    given = list(tolerations)
    limits = [_limit(taint, given) for taint in TAINTS]
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(taint: str, tolerations: Iterable[Object]) -> float | None:
    matching = [each for each in tolerations if _matches(taint, each)]
    if not matching:
        return 0.0
    limits = [float(bound) for each in matching if (bound := whole(each.get("tolerationSeconds"))) is not None]
    return max(0.0, min(limits)) if limits else None


def _matches(taint: str, toleration: Object) -> bool:
    """Return whether a toleration covers a taint, which has the effect NoExecute and no value."""
    if toleration.get("effect") not in ("NoExecute", None, ""):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    return toleration.get("key") == taint and (exists or not toleration.get("value"))
