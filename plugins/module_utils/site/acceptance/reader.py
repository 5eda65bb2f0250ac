"""A reader of one object of a site, and the objects to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...vsphere.session import Session

HOST, CLUSTER, VM, VCENTER = "host", "cluster", "virtual machine", "vCenter"


@dataclass(frozen=True)
class ReadRequest:
    """The objects to read by name, the days of events, the hours of counters, and the RDMA switch."""

    hosts: Mapping[str, Any]
    vms: Mapping[str, Any]
    clusters: Mapping[str, Any]
    tag_category: str = ""
    switch: str = "rdma"
    days: float = 7.0
    hours: float = 1.0

    def objects_of(self, kind: str) -> Mapping[str, Any]:
        """Return the objects of a kind by name."""
        return {HOST: self.hosts, CLUSTER: self.clusters, VM: self.vms, VCENTER: {VCENTER: None}}[kind]


@dataclass(frozen=True)
class Reader:
    """One reader: its name and the kind of its objects.

    ``is_empty`` returns whether the result is empty; ``is_requested``, whether the request includes this reader.
    """

    name: str
    kind: str
    read: Callable[[Session, ReadRequest, str], Any]
    is_empty: Callable[[Any], bool] = lambda _result: False
    is_requested: Callable[[ReadRequest], bool] = lambda _request: True


class UnreadableGroup(Exception):
    """A reader returned an error as a part of its result."""


def selected(readers: Iterable[Reader], request: ReadRequest) -> list[tuple[Reader, str]]:
    """Return each requested reader with each of its objects."""
    requested = [reader for reader in readers if reader.is_requested(request)]
    return [(reader, name) for reader in requested for name in sorted(request.objects_of(reader.kind))]
