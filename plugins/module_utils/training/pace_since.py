# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The steps of each rank of a job since a moment, from its growing step records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.names import short_name
from .received_record import heard


@dataclass
class Advance:
    """Steps made since the moment by each rank; fed with records in any order of ranks."""

    since: float
    steps: dict[int, int] = field(default_factory=dict)
    size: int = 0
    step: int = 0
    hosts: dict[int, str] = field(default_factory=dict)

    def feed(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take more records; begin and end of a phase are no steps."""
        for record in map(heard, records):
            if record is None or record.mark is not None:
                continue
            self.size, self.step = max(self.size, record.size), max(self.step, record.step)
            self.hosts[record.rank] = record.host
            if record.seen >= self.since:
                self.steps[record.rank] = self.steps.get(record.rank, 0) + record.stride

    def fewest(self) -> int:
        """The steps of the rank that made the fewest; none while a rank of the job was not heard."""
        if not self.size:
            return 0
        return min(self.steps.get(rank, 0) for rank in range(self.size))

    def behind(self, wanted: int) -> list[int]:
        """The ranks that have made fewer steps."""
        return [rank for rank in range(self.size) if self.steps.get(rank, 0) < wanted]

    def ranks_on(self, host: str) -> list[int]:
        """Return the ranks that run on a node, whose name may have other case or a domain."""
        return sorted(rank for rank, name in self.hosts.items() if short_name(name) == short_name(host))
