"""A reader of one object of a site, and the objects to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...hosts import host_info
from ...vsphere import counters, inventory
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

    def objects_of(self, kind: str) -> Mapping[str, object]:
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
    requested = [reader for reader in readers if reader.is_requested(request)]
    return [(reader, name) for reader in requested for name in sorted(request.objects_of(reader.kind))]


def read_group(group: str, session: Session, request: ReadRequest, name: str) -> object:
    """Return a group of settings of a host, in the form of esxi_info."""
    host = inventory.Host(session, request.hosts[name], name)
    (entry,) = host_info.gather(inventory.HostSet(session, [host], host_info.paths([group])), [group])
    if entry.get("failed"):
        raise UnreadableGroup(entry["msg"])
    return entry


def _counters(session: Session, _request: ReadRequest, _name: str) -> object:
    return counters.catalogue(session, "gpu")


def is_without(key: str, result: object) -> bool:
    return not (result.get(key) if isinstance(result, Mapping) else result)


# The key of the result that is empty on a host without such devices, by the group of settings.
_DEVICES = {"graphics": "gpus", "rdma": "rdma_devices"}
GROUPS = tuple(
    Reader(
        f"esxi_info: {name}",
        HOST,
        partial(read_group, name),
        is_empty=partial(is_without, _DEVICES[name]) if name in _DEVICES else lambda _result: False,
    )
    for name in host_info.GROUPS
)
COUNTERS = Reader("counters of GPUs", VCENTER, _counters, is_empty=lambda result: not result.counters)
HOST_READERS = (*GROUPS, COUNTERS)
