"""The objects of the collection on a site, and those of others. A write that no teardown may send raises Violation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .site import CLUSTER, Site, Violation

SWITCH, GROUP, ADAPTER = "rdma", "rdma-vmk", "vmk1"
OLD, NEW = {"vgpu.hotmigrate.enabled": False}, {"vgpu.hotmigrate.enabled": True}


@dataclass
class Built:
    """The objects of the collection in vCenter, the machines of others, and the record of shared settings."""

    site: Site
    records: Path
    workers: set[str] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)
    adopted: set[str] = field(default_factory=set)
    has_rules: bool = False
    has_switch: bool = False
    adapters: set[str] = field(default_factory=set)
    tags: set[str] = field(default_factory=set)
    has_attributes: bool = False
    settings: dict[str, Any] = field(default_factory=lambda: dict(OLD))
    # The machines of others, and those of them that use the network of the collection.
    others: frozenset[str] = frozenset({"database"})
    connected: set[str] = field(default_factory=set)
    # The machines that the user agreed to delete.
    agreed: set[str] = field(default_factory=set)

    @property
    def record(self) -> Path:
        return self.records / f"{CLUSTER}-shared-settings.json"

    @property
    def carriers(self) -> set[str]:
        """Return the objects that carry a custom attribute of the collection."""
        return self.workers | self.unfinished | self.adopted | self.adapters

    @property
    def is_left(self) -> bool:
        """Return whether a teardown has work, apart from the lock."""
        removable = (self.carriers, self.has_rules, self.has_switch, self.tags, self.has_attributes)
        return any(removable) or self.record.exists()

    def fabric(self) -> dict[str, Any]:
        """Return the network as cluster_info returns it."""
        groups = {GROUP: {"vlan": 216, "ours": True}} if self.has_switch else {}
        return {
            "switch": {"mtu": 9000, "ours": True} if self.has_switch else None,
            "port_groups": groups,
            "hosts": {name: self._host(name) for name in self.site.hosts},
            "machines": [{"name": name, "port_groups": [GROUP]} for name in sorted(self.users)] if groups else [],
            "removal": {"switch": self.has_switch, "port_groups": list(groups), "in_use": [], "shared_with": []},
        }

    def _host(self, name: str) -> dict[str, Any]:
        is_built = name in self.adapters
        return {
            "uplinks": ["vmnic2"] if is_built else [],
            "adapters": {GROUP: {"device": ADAPTER}} if is_built else {},
            "built": {"joined": True, "adapters": [GROUP]} if is_built else None,
            "tagged": ADAPTER if name in self.tags else "",
        }

    @property
    def users(self) -> set[str]:
        """Return the machines on the network of the collection."""
        return self.workers | self.connected

    def delete(self, worker: str, run: str) -> None:
        """Delete a machine with its disks."""
        self.site.write(run, f"deletion of {worker}")
        if worker not in self.workers | self.unfinished:
            raise Violation(f"{worker} is deleted, which the collection did not build")
        if worker not in self.agreed:
            raise Violation(f"{worker} is deleted, and no one agreed to that")
        if self.site.job and self.site.job.is_running and worker in self.site.job.ranks.values():
            raise Violation(f"{worker} is deleted with a rank")
        self.workers.discard(worker)
        self.unfinished.discard(worker)
        if worker in self.site.workers:
            self.site.delete(worker)

    def unmark(self, worker: str, run: str) -> None:
        """Remove the mark of an adopted machine, with its record of the override that a test replaced."""
        self.site.write(run, f"mark of {worker}")
        if worker in self.site.overridden:
            raise Violation(f"{worker} loses its mark, and DRS never gets its setting back")
        self.adopted.discard(worker)

    def remove_adapter(self, host: str, run: str) -> None:
        self.site.write(run, f"removal of {ADAPTER} of {host}")
        if host in self.tags:
            raise Violation(f"{ADAPTER} of {host} is removed, and the tag for PVRDMA still names it")
        self.adapters.discard(host)

    def remove_switch(self, run: str) -> None:
        self.site.write(run, "removal of the switch")
        if self.users:
            raise Violation(f"the switch is removed under {', '.join(sorted(self.users))}")
        self.has_switch = False

    def change(self, run: str, what: str, **values: Any) -> None:
        """Write other values."""
        self.site.write(run, what)
        for name, value in values.items():
            setattr(self, name, value)
