"""The readers of hosts and of counters, all that preflight needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...hosts import host_info
from ...vsphere import counters, inventory
from ...vsphere.session import Session
from .reader import HOST, VCENTER, Reader, ReadRequest, UnreadableGroup


def read_group(group: str, session: Session, request: ReadRequest, name: str) -> Any:
    """Return a group of settings of a host, in the form of esxi_info."""
    host = inventory.Host(session, request.hosts[name], name)
    (entry,) = host_info.gather(inventory.HostSet(session, [host], host_info.paths([group])), [group])
    if entry.get("failed"):
        raise UnreadableGroup(entry["msg"])
    return entry


def _counters(session: Session, _request: ReadRequest, _name: str) -> Any:
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
