"""The networks of a cluster by name, and the cards that connect to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import NotFound
from ..vsphere import properties
from ..vsphere.escaped_names import plain
from ..vsphere.properties import Properties
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session


@dataclass(frozen=True)
class Network:
    """One network; the other fields are set only for a distributed port group.

    ``path`` is SWITCH/NAME, and also the name of networks that share theirs, as the port groups of a segment of NSX.
    """

    name: str
    ref: Any
    switch: str = ""
    key: str = ""
    path: str = ""

    @property
    def to_come(self) -> bool:
        """Whether the network will be created later."""
        return self.ref is None

    def backing(self) -> ApiObject:
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
        """Return the network with a name or path; raise if no network or several have it."""
        desired, tried = plain(name), f"find one port group named {name!r}"
        matches = [network for network in self.all if desired in (network.name, network.path)]
        if len(matches) == 1:
            return matches[0]
        shared = (network.name for network in self.all if network.name == network.path)
        if alike := [name for name in shared if name.endswith(f"/{desired}")]:
            reason = f"{len(alike)} port groups have that name"
            raise NotFound(self.cluster, tried, reason, f"name it with its switch: {' or '.join(sorted(alike))}")
        known = ", ".join(sorted({network.name for network in self.all})) or "none"
        reason = f"{len(matches)} networks have that name" if matches else f"there is none; it has {known}"
        raise NotFound(self.cluster, tried, reason, "correct the name of the port group")

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


def read(session: Session, cluster: str, refs: Sequence[ApiObject]) -> Networks:
    """Return the networks of a cluster, with two or three reads."""
    different = {ref._moId: ref for ref in refs}.values()
    groups = [ref for ref in different if isinstance(ref, vim.dvs.DistributedVirtualPortgroup)]
    # pylint: disable-next=unidiomatic-typecheck # port groups are networks too
    standard = [ref for ref in different if type(ref) is vim.Network]
    group_values = properties.read_many(session, groups, ("name", "key", "config.distributedVirtualSwitch"))
    switches = {
        group["config.distributedVirtualSwitch"]._moId: group["config.distributedVirtualSwitch"]
        for group in group_values.values()
    }
    switch_values = {
        key: values
        for alike in properties.by_type(switches.values())
        for key, values in properties.read_many(session, alike, ("name", "uuid")).items()
    }
    named = properties.read_many(session, standard, ("name",))
    return Networks(
        cluster,
        distinct(
            [
                *(_group(ref, group_values[ref._moId], switch_values) for ref in groups),
                *(Network(named[ref._moId]["name"], ref) for ref in standard),
            ]
        ),
    )


def distinct(networks: Sequence[Network]) -> list[Network]:
    """Return the networks; a port group that shares its name with another network is named with its switch."""
    shared = {name for name, count in Counter(network.name for network in networks).items() if count > 1}
    return [replace(one, name=one.path) if one.path and one.name in shared else one for one in networks]


def _group(ref: object, values: Properties, switches: Mapping[str, Mapping[str, Any]]) -> Network:
    switch = switches[values["config.distributedVirtualSwitch"]._moId]
    return Network(values["name"], ref, switch["uuid"], values["key"], f"{switch['name']}/{values['name']}")
