"""One host as esxi_info reads it, and the groups of settings that esxi_info returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..plan import State
from ..vsphere.inventory import Host
from . import network
from .pci_address import with_domain

Entry = dict[str, Any]
NUMA = "hardware.numaInfo.numaNode"
UUID = "summary.hardware.uuid"


class Reading:
    """One host that is being read, with data that several groups use; ``requested`` is the user's profile."""

    def __init__(self, host: Host, requested: State) -> None:
        self.host, self.requested = host, requested

    @cached_property
    def net(self) -> network.HostNetwork:
        return network.read(self.host)

    @cached_property
    def numa(self) -> dict[str, int]:
        """Return the NUMA nodes by PCI address, for the devices whose node the host reports."""
        nodes = self.host[NUMA] or []
        return {with_domain(text): int(node.typeId) for node in nodes for text in node.pciId or []}


@dataclass(frozen=True)
class Group:
    """Settings that esxi_info reads together.

    ``name`` is the choice of esxi_info's option ``gather``, ``shows`` its documentation. ``paths`` are properties that
    are always read, ``paths_of`` those that depend on the profile that the user gave. ``read`` returns keys of the
    host's entry; ``waiting`` returns the settings of an entry that take effect only when the host boots.
    """

    name: str
    shows: str
    paths: tuple[str, ...]
    read: Callable[[Reading], Entry]
    calls: tuple[str, ...] = ()
    paths_of: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda _requested: ()
    waiting: Callable[[Entry], Iterable[str]] = lambda _entry: ()


def by_name(
    key: str, shows: str, read: Callable[[Host, Any], Any], paths_of: Callable[[Any], tuple[str, ...]]
) -> Group:
    """Return a group for a part with too many settings to read all: it reads those that the profile names."""
    return Group(
        key,
        f"{shows} that O(profile.{key}) names",
        (),
        lambda reading: {key: read(reading.host, reading.requested.get(key) or {})},
        paths_of=lambda profile: paths_of(profile.get(key) or {}),
    )
