"""The inputs of a worker: the context that all workers of a call share, and the assignment of the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..vsphere.libraries import LibraryItem
from . import clone, networks
from .machine import Machine
from .storage import UsedPolicies
from .worker_cluster import WorkerCluster
from .worker_spec import WorkerSetOptions, WorkerSpec

ReportProgress = Callable[[str, str], None]


def _discard_progress(_about: str, _what: str) -> None:
    """Discard progress."""


@dataclass(frozen=True)
class Context:
    """The cluster of a call, the options for all of its workers, and the function that reports progress.

    ``items`` are the items of content libraries that the workers name, by path; ``policies`` are storage policies.
    """

    cluster: WorkerCluster
    options: WorkerSetOptions
    locations: clone.CloneLocations
    report: ReportProgress = _discard_progress
    specs: Sequence[WorkerSpec] = ()
    items: dict[str, LibraryItem] = field(default_factory=dict)
    policies: UsedPolicies = field(default_factory=UsedPolicies)

    @property
    def networks(self) -> networks.Networks:
        """The networks of the cluster, with the port groups that will be created before the workers."""
        return networks.to_come(self.cluster.networks, self.options.to_come.port_groups)


@dataclass
class Assignment:
    """The host of one worker or the reason why it has none, MAC addresses for new cards, and the state of this run."""

    host: str = ""
    refusal: str = ""
    makes_room_for: tuple[str, ...] = ()
    macs: Mapping[str, str] = field(default_factory=dict)
    cloned: bool = False
    started: Machine | None = None
    silent: bool = False  # the VM was started, and its guest reported no address in time
