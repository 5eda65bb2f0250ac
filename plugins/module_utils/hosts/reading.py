# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""One host as esxi_info reads it, and the groups of settings in which esxi_info shows a host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..vsphere.inventory import Host
from . import network
from .pci_address import with_domain

Entry = dict[str, Any]
NUMA = "hardware.numaInfo.numaNode"
UUID = "summary.hardware.uuid"


class Reading:
    """One host as it is read, with what several groups use. ``asked`` is the profile that the user gave for it."""

    def __init__(self, host: Host, asked: Mapping[str, Any]) -> None:
        self.host, self.asked = host, asked

    @cached_property
    def net(self) -> dict[str, Any]:
        """The network of the host."""
        return network.read(self.host)

    @cached_property
    def numa(self) -> dict[str, int]:
        """The NUMA node by PCI address, where the host reports it."""
        nodes = self.host[NUMA] or []
        return {with_domain(text): int(node.typeId) for node in nodes for text in node.pciId or []}


def _no_paths(_asked: Mapping[str, Any]) -> tuple[str, ...]:
    return ()


def _nothing(_entry: Entry) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Group:
    """Settings that esxi_info reads together.

    ``name`` is the choice of esxi_info's option ``gather``, ``shows`` its documentation. ``paths`` are properties that
    are always read, ``paths_of`` those that follow from the profile that the user gave. ``read`` returns keys of the
    host's entry; ``waiting`` finds in an entry what takes force only when the host boots.
    """

    name: str
    shows: str
    paths: tuple[str, ...]
    read: Callable[[Reading], Entry]
    calls: tuple[str, ...] = ()
    paths_of: Callable[[Mapping[str, Any]], tuple[str, ...]] = _no_paths
    waiting: Callable[[Entry], Iterable[str]] = _nothing


def by_name(
    key: str, shows: str, read: Callable[[Host, Any], Any], paths_of: Callable[[Any], tuple[str, ...]]
) -> Group:
    """The group of a part that a host has too much of: only what the profile names under its key is read."""
    return Group(
        key,
        f"{shows} that O(profile.{key}) names",
        (),
        lambda reading: {key: read(reading.host, reading.asked.get(key) or {})},
        paths_of=lambda profile: paths_of(profile.get(key) or {}),
    )
