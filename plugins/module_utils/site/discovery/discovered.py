"""The objects of a vCenter that an inventory can refer to, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...maintenance.cluster_facts import ClusterFacts

Entry = Mapping[str, Any]  # a host as esxi_info returns it


@dataclass(frozen=True)
class DiscoveredNetwork:
    """A port group of a cluster; standard port groups and trunks have no ``vlan``."""

    name: str
    distributed: bool = False
    vlan: int | None = None


@dataclass(frozen=True)
class DiscoveredDatastore:
    """A datastore of a cluster; ``hosts`` is the number of hosts of the cluster that have it mounted."""

    name: str
    kind: str
    free_gb: int
    capacity_gb: int
    hosts: int


@dataclass(frozen=True)
class DiscoveredTemplate:
    """A template of vCenter, or of a content library; ``firmware`` and ``guest`` are empty if they are not known."""

    name: str
    guest: str = ""
    firmware: str = ""
    library: str = ""


@dataclass(frozen=True)
class DiscoveredCluster:
    """A cluster with its hosts, and the reasons that currently prevent their preparation."""

    facts: ClusterFacts
    hosts: Sequence[Entry]
    networks: Sequence[DiscoveredNetwork] = ()
    datastores: Sequence[DiscoveredDatastore] = ()
    stops: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.facts["name"]

    @property
    def readable(self) -> list[Entry]:
        """Return the hosts that could be read."""
        return [host for host in self.hosts if not host.get("failed")]

    @property
    def gpu_hosts(self) -> list[Entry]:
        return [host for host in self.readable if host["gpus"]]

    @property
    def free_hosts(self) -> list[str]:
        """Return the hosts in service without a running virtual machine."""
        busy = {vm["host"] for vm in self.facts["vms"] or ()} | {out["host"] for out in self.facts["out_of_service"]}
        return [host["host"] for host in self.readable if host["host"] not in busy]


@dataclass(frozen=True)
class DiscoveredSite:
    """A vCenter; ``ambiguous`` are the names that several clusters have."""

    server: str
    version: str
    clusters: Sequence[DiscoveredCluster]
    templates: Sequence[DiscoveredTemplate] = ()
    ambiguous: Sequence[str] = ()
    uuid: str = ""
