# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The desired RDMA fabric of a cluster, checked as far as that needs no server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv4Network, NetmaskValueError
from typing import Any

from ..errors import Refused
from ..vsphere.escaped_names import plain

LEAST_MTU, MOST_MTU = 1280, 9000
MOST_VLAN = 4094


@dataclass(frozen=True)
class PortGroupSpec:
    """A port group of the switch; without ``vlan`` that of an existing one stays."""

    name: str
    vlan: int | None = None


@dataclass(frozen=True)
class AdapterSpec:
    """A vmkernel adapter that every host has on a port group; without ``services`` those that it carries stay."""

    port_group: str
    mtu: int
    device: str | None = None
    network: str | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    services: tuple[str, ...] | None = None

    @property
    def dhcp(self) -> bool:
        return self.network is None

    @property
    def netmask(self) -> str:
        return str(IPv4Network(self.network).netmask) if self.network else ""


@dataclass(frozen=True)
class FabricSpec:
    """The fabric of one cluster; without ``uplink`` each host gives its only free RDMA card."""

    cluster: str
    switch: str
    mtu: int = MOST_MTU
    uplink: str | None = None
    port_groups: tuple[PortGroupSpec, ...] = ()
    adapters: tuple[AdapterSpec, ...] = ()
    adopt: bool = False


def fabric_spec_of(params: Mapping[str, Any]) -> FabricSpec:
    """The desired fabric from the options of the module; options that contradict each other are refused."""
    found = FabricSpec(
        cluster=plain(params["cluster"]),
        switch=plain(params["switch"]),
        mtu=params["mtu"],
        uplink=params["uplink"] or None,
        port_groups=tuple(PortGroupSpec(plain(one["name"]), one["vlan"]) for one in params["port_groups"]),
        adapters=tuple(_adapter(one, params["mtu"]) for one in params["adapters"]),
        adopt=params["adopt"],
    )
    reasons = [*_bad_switch(found), *_bad_names(found), *(text for one in found.adapters for text in _bad(one, found))]
    reasons += _bad_addresses(found.adapters)
    if reasons:
        raise Refused(found.cluster, f"plan its RDMA switch {found.switch}", "; ".join(reasons), "correct that first")
    return found


def _adapter(given: Mapping[str, Any], mtu: int) -> AdapterSpec:
    services = given["services"]
    return AdapterSpec(
        port_group=plain(given["port_group"]),
        mtu=given["mtu"] or mtu,
        device=given["device"] or None,
        network=given["network"] or None,
        addresses={host: str(address) for host, address in (given["addresses"] or {}).items()},
        services=None if services is None else tuple(sorted(set(services))),
    )


def _bad_switch(found: FabricSpec) -> Iterator[str]:
    if not LEAST_MTU <= found.mtu <= MOST_MTU:
        yield f"an MTU of {found.mtu} is out of range: a distributed switch takes {LEAST_MTU} to {MOST_MTU}"
    for one in found.port_groups:
        if one.vlan is not None and not 0 <= one.vlan <= MOST_VLAN:
            yield f"port group {one.name} cannot have VLAN {one.vlan}: it is a number from 0 (none) to {MOST_VLAN}"


def _bad_names(found: FabricSpec) -> Iterator[str]:
    for name in _twice(one.name for one in found.port_groups):
        yield f"port group {name} is named twice"
    for name in _twice(one.port_group for one in found.adapters):
        yield f"two adapters are wanted on port group {name}; give each adapter another port group"
    for name in _twice(one.device for one in found.adapters if one.device):
        yield f"{name} is wanted on two port groups"


def _bad(one: AdapterSpec, found: FabricSpec) -> Iterator[str]:
    """The errors in the options of one adapter."""
    place = f"the adapter on {one.port_group}"
    if not LEAST_MTU <= one.mtu <= found.mtu:
        yield f"{place} cannot have MTU {one.mtu}: the switch has {found.mtu}, and the least is {LEAST_MTU}"
    if one.dhcp and one.addresses:
        yield f"{place} has addresses but no network; give the network in which they lie, such as 10.216.0.0/24"
    if one.dhcp:
        return
    try:
        network = IPv4Network(one.network or "")
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        yield f"{place} has no usable network: {error}"
        return
    for host, address in one.addresses.items():
        yield from _bad_address(host, address, network)


def _bad_address(host: str, text: str, network: IPv4Network) -> Iterator[str]:
    try:
        address = IPv4Address(text)
    except AddressValueError as error:
        yield f"the address of {host} is invalid: {error}"
        return
    edges = {network.network_address, network.broadcast_address} if network.prefixlen < 31 else set()
    if address not in network or address in edges:
        yield f"{text} of {host} is not a host address in {network}"


def _bad_addresses(adapters: Iterable[AdapterSpec]) -> Iterator[str]:
    owners: dict[str, list[str]] = {}
    for one in adapters:
        for host, address in one.addresses.items():
            owners.setdefault(address, []).append(host)
    for address, hosts in owners.items():
        if len(hosts) > 1:
            yield f"{address} is given to {' and '.join(hosts)}"


def same_network(address: str, netmask: str, other: str) -> bool:
    """Whether another address lies in the network of an address."""
    return IPv4Address(other) in IPv4Interface(f"{address}/{netmask}").network


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
