"""The desired RDMA fabric of a cluster, checked as far as possible without a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Any

from ..errors import Refused
from ..vsphere.escaped_names import plain

LEAST_MTU, MOST_MTU = 1280, 9000
MOST_VLAN = 4094


@dataclass(frozen=True)
class PortGroupSpec:
    """A port group of the switch; without ``vlan``, an existing one keeps its VLAN."""

    name: str
    vlan: int | None = None


@dataclass(frozen=True)
class AdapterSpec:
    """A vmkernel adapter that every host has on a port group; without ``services``, an existing one keeps its own."""

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
    """The fabric of one cluster; without ``uplink``, each host uses its only free RDMA card."""

    cluster: str
    switch: str
    mtu: int = MOST_MTU
    uplink: str | None = None
    port_groups: tuple[PortGroupSpec, ...] = ()
    adapters: tuple[AdapterSpec, ...] = ()
    adopt: bool = False


def fabric_spec_of(params: Mapping[str, Any]) -> FabricSpec:
    """Return the desired fabric from the module options; refuse options that contradict each other."""
    spec = FabricSpec(
        cluster=plain(params["cluster"]),
        switch=plain(params["switch"]),
        mtu=params["mtu"],
        uplink=params["uplink"] or None,
        port_groups=tuple(PortGroupSpec(plain(group["name"]), group["vlan"]) for group in params["port_groups"]),
        adapters=tuple(_adapter(adapter, params["mtu"]) for adapter in params["adapters"]),
        adopt=params["adopt"],
    )
    reasons = [*_bad_switch(spec), *_bad_names(spec)]
    reasons += [reason for adapter in spec.adapters for reason in _bad_adapter(adapter, spec)]
    reasons += _bad_addresses(spec.adapters)
    if reasons:
        raise Refused(spec.cluster, f"plan its RDMA switch {spec.switch}", "; ".join(reasons), "correct that first")
    return spec


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


def _bad_switch(spec: FabricSpec) -> Iterator[str]:
    if not LEAST_MTU <= spec.mtu <= MOST_MTU:
        yield f"an MTU of {spec.mtu} is out of range: a distributed switch takes {LEAST_MTU} to {MOST_MTU}"
    for group in spec.port_groups:
        if group.vlan is not None and not 0 <= group.vlan <= MOST_VLAN:
            yield f"port group {group.name} cannot have VLAN {group.vlan}: it is a number from 0 (none) to {MOST_VLAN}"


def _bad_names(spec: FabricSpec) -> Iterator[str]:
    for name in _twice(group.name for group in spec.port_groups):
        yield f"port group {name} is named twice"
    for name in _twice(adapter.port_group for adapter in spec.adapters):
        yield f"two adapters are requested on port group {name}; give each adapter another port group"
    for name in _twice(adapter.device for adapter in spec.adapters if adapter.device):
        yield f"{name} is requested on two port groups"


def _bad_adapter(adapter: AdapterSpec, spec: FabricSpec) -> Iterator[str]:
    """Yield the errors in the options of one adapter."""
    label = f"the adapter on {adapter.port_group}"
    if not LEAST_MTU <= adapter.mtu <= spec.mtu:
        yield f"{label} cannot have MTU {adapter.mtu}: the switch has {spec.mtu}, and the least is {LEAST_MTU}"
    if adapter.dhcp and adapter.addresses:
        yield f"{label} has addresses but no network; give their network, such as 10.216.0.0/24"
    if adapter.dhcp:
        return
    try:
        network = IPv4Network(adapter.network or "")
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        yield f"{label} has no usable network: {error}"
        return
    for host, address in adapter.addresses.items():
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
    for adapter in adapters:
        for host, address in adapter.addresses.items():
            owners.setdefault(address, []).append(host)
    for address, hosts in owners.items():
        if len(hosts) > 1:
            yield f"{address} is given to {' and '.join(hosts)}"


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
