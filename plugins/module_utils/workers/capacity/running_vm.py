"""The virtual machines that run on a host, as data for planners of evacuations and placements."""

from __future__ import annotations

from dataclasses import dataclass

# The vCenter option that allows a virtual machine with vGPUs to move while it runs.
HOT_MIGRATE = "vgpu.hotmigrate.enabled"
# The setting of a virtual machine that makes DRS power it off, instead of moving it, when its host is emptied.
STOPPED_BY_DRS = "maintenance.vm.evacuation.poweroff"


@dataclass(frozen=True)
class Vm:
    """A powered-on virtual machine, and what keeps it on its host; keys are unique, names may repeat."""

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
    stopped_by_drs: bool = False
    of_vcenter: bool = False

    @property
    def whose(self) -> str:
        """Its folder, resource pool and owner, as text."""
        parts = [("folder", self.folder), ("pool", self.pool), ("owner", self.owner)]
        return ", ".join(f"{label} {value}" for label, value in parts if value) or "owner unknown"
