# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The number of steps of each rank since a given time, from its growing step records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.names import short_name
from .received_record import received_record


@dataclass
class StepsSince:
    """The number of steps of each rank since a time; ``feed`` accepts the records of the ranks in any order."""

    since: float
    steps: dict[int, int] = field(default_factory=dict)
    size: int = 0
    step: int = 0
    hosts: dict[int, str] = field(default_factory=dict)

    def feed(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Add records; the begin and the end of a phase do not count as steps."""
        for record in map(received_record, records):
            if record is None or record.mark is not None:
                continue
            self.size, self.step = max(self.size, record.size), max(self.step, record.step)
            self.hosts[record.rank] = record.host
            if record.seen >= self.since:
                self.steps[record.rank] = self.steps.get(record.rank, 0) + record.stride

    def fewest(self) -> int:
        """Return the steps of the rank with the fewest; 0 if a rank of the job has not sent a record."""
        if not self.size:
            return 0
        return min(self.steps.get(rank, 0) for rank in range(self.size))

    def behind(self, steps: int) -> list[int]:
        """Return the ranks that have made fewer steps."""
        return [rank for rank in range(self.size) if self.steps.get(rank, 0) < steps]

    def ranks_on(self, host: str) -> list[int]:
        """Return the ranks that run on a node; upper case and the domain of its name are ignored."""
        return sorted(rank for rank, name in self.hosts.items() if short_name(name) == short_name(host))
