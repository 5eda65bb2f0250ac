# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The networks of a cluster by name, and the cards that connect to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import NotFound
from ..vsphere import properties
from ..vsphere.escaped_names import plain
from ..vsphere.sdk import vim
from ..vsphere.session import Session


@dataclass(frozen=True)
class Network:
    """One network; ``switch`` and ``key`` are set only for a distributed port group."""

    name: str
    ref: Any
    switch: str = ""
    key: str = ""

    @property
    def to_come(self) -> bool:
        """Whether the network will be created later."""
        return self.ref is None

    def backing(self) -> Any:
        """Return the backing of a card that is connected to the network."""
        card = vim.vm.device.VirtualEthernetCard
        if not self.key:
            return card.NetworkBackingInfo(deviceName=self.name, network=self.ref)
        port = vim.dvs.PortConnection(switchUuid=self.switch, portgroupKey=self.key)
        return card.DistributedVirtualPortBackingInfo(port=port)


@dataclass(frozen=True)
class Networks:
    """All networks of a cluster."""

    cluster: str
    all: Sequence[Network]

    def named(self, name: str) -> Network:
        """Return the network with that name; refused if there is none, or more than one."""
        matches = [network for network in self.all if network.name == plain(name)]
        if len(matches) == 1:
            return matches[0]
        known = ", ".join(sorted({network.name for network in self.all})) or "none"
        reason = f"{len(matches)} networks have that name" if matches else f"there is none; it has {known}"
        raise NotFound(
            self.cluster, f"find one port group named {name!r}", reason, "correct the name of the port group"
        )

    def name_of(self, backing: object) -> str | None:
        """Return the name of the network that a card is connected to."""
        port = getattr(backing, "port", None)
        if port is not None:
            return next(
                (network.name for network in self.all if network.key and network.key == port.portgroupKey), None
            )
        name = getattr(backing, "deviceName", None)
        return name and plain(name)


def to_come(networks: Networks, names: Sequence[str]) -> Networks:
    """Return the networks and the port groups of the RDMA switch that will be created later."""
    there = {network.name for network in networks.all}
    desired = [plain(name) for name in names]
    made = [Network(name, None, key=f"{name} to come") for name in desired if name not in there]
    return replace(networks, all=[*networks.all, *made])


def read(session: Session, cluster: str, refs: Sequence[Any]) -> Networks:
    """Return the networks of a cluster, with two or three reads."""
    groups = [ref for ref in refs if isinstance(ref, vim.dvs.DistributedVirtualPortgroup)]
    # pylint: disable-next=unidiomatic-typecheck # port groups are networks too
    standard = [ref for ref in refs if type(ref) is vim.Network]
    group_values = properties.read_many(session, groups, ("name", "key", "config.distributedVirtualSwitch"))
    switches = {
        group["config.distributedVirtualSwitch"]._moId: group["config.distributedVirtualSwitch"]
        for group in group_values.values()
    }
    uuids = {
        key: values["uuid"]
        for some in _by_kind(switches).values()
        for key, values in properties.read_many(session, some, ("uuid",)).items()
    }
    named = properties.read_many(session, standard, ("name",))
    return Networks(
        cluster,
        [
            *(_group(ref, group_values[ref._moId], uuids) for ref in groups),
            *(Network(named[ref._moId]["name"], ref) for ref in standard),
        ],
    )


def _group(ref: object, values: Mapping[str, Any], uuids: Mapping[str, str]) -> Network:
    return Network(values["name"], ref, uuids[values["config.distributedVirtualSwitch"]._moId], values["key"])


def _by_kind(refs: Mapping[str, Any]) -> dict[Any, list[Any]]:
    kinds: dict[Any, list[Any]] = {}
    for ref in refs.values():
        kinds.setdefault(type(ref), []).append(ref)
    return kinds
