# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Gradients and losses that are not finite: a job that continues with them learns nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .received_record import ReceivedRecord

NAMED = 20


@dataclass
class NotFinite:
    """The first step at which the gradients or the loss of each rank were not finite."""

    gradients: dict[int, int] = field(default_factory=dict)
    losses: dict[int, int] = field(default_factory=dict)
    every: int = 1

    def feed(self, record: ReceivedRecord) -> None:
        """Add a step; a finite loss clears the earlier ones."""
        if record.not_finite is not None:
            self.gradients.setdefault(record.rank, record.not_finite)
            self.every = record.checked_every
        if record.loss is None:
            return
        if math.isfinite(record.loss):
            self.losses.pop(record.rank, None)
        else:
            self.losses.setdefault(record.rank, record.step)

    def sentence(self) -> str:
        """Return which values are not finite, since which step and on which ranks; empty if all are."""
        parts = []
        if self.gradients:
            often = f" (checked every {self.every} steps)" if self.every > 1 else ""
            parts.append(f"gradients not finite since step {min(self.gradients.values())}{often} {_on(self.gradients)}")
        if self.losses:
            parts.append(f"loss not finite since step {min(self.losses.values())} {_on(self.losses)}")
        return ", ".join(parts)


def _on(ranks: dict[int, int]) -> str:
    named = ", ".join(map(str, sorted(ranks)[:NAMED]))
    more = f" and {len(ranks) - NAMED} more" if len(ranks) > NAMED else ""
    return f"on rank{'s' if len(ranks) > 1 else ''} {named}{more}"
