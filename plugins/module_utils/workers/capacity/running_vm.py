# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The virtual machines that run on a host, as data for planners of evacuations and placements."""

from __future__ import annotations

from dataclasses import dataclass

# The option of vCenter that lets a virtual machine with vGPUs move while it runs.
HOT_MIGRATE = "vgpu.hotmigrate.enabled"


@dataclass(frozen=True)
class Vm:
    """A powered-on virtual machine, and what ties it to its host; names may repeat, keys do not."""

    key: str
    name: str
    host: str
    folder: str = ""
    pool: str = ""
    owner: str = ""
    vgpus: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    reserved_mb: int = 0
    left_by_drs: bool = False

    @property
    def whose(self) -> str:
        """Where it lies and who owns it, for people to read."""
        parts = [("folder", self.folder), ("pool", self.pool), ("owner", self.owner)]
        return ", ".join(f"{label} {value}" for label, value in parts if value) or "owner unknown"
