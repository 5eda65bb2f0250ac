# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The pods of a job on Kubernetes, in words; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def in_rank_order(warm: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the pods of an entry ``warm`` in the order of their ranks; none if the job has no pods."""
    return sorted((warm.get("pods") or {}).items(), key=lambda pod: list(pod[1]["ranks"]))


def rank_list(ranks: Sequence[int]) -> str:
    """Return ranks in words."""
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks))}"
