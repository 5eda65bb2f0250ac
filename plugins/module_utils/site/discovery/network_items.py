"""The RDMA network of a cluster as variables of an inventory."""

from __future__ import annotations

from collections.abc import Iterator

from .discovered import DiscoveredCluster, DiscoveredNetwork, Entry
from .inventory_text import Item

SWITCH, VMKERNEL, MACHINES = "rdma", "rdma-vmk", "rdma-vm"
_DEVICE = "vmk1"


def described(network: DiscoveredNetwork) -> str:
    """Return a port group for a list."""
    if not network.distributed:
        return network.name
    return f"{network.name} (distributed, {'trunk' if network.vlan is None else f'VLAN {network.vlan or None}'})"


def cards(host: Entry) -> Iterator[str]:
    """Yield the RDMA cards of a host, each with its switch."""
    for card in _rdma_cards(host):
        place = f"on switch {card['switch']}" if card["switch"] else "free"
        yield f"{card['device']} ({card['rdma']}, {card['speed_mbps'] // 1000} Gb/s, {place})"


def profile_items(cluster: DiscoveredCluster) -> Iterator[Item]:
    """Yield the parts of the hosts' profile that concern RDMA."""
    if not _rdma_hosts(cluster):
        return
    tags = {(host.get("pvrdma") or {}).get("vmk") or "" for host in cluster.readable}
    if len(tags) == 1 and (tag := tags.pop()):
        yield Item("pvrdma", {"vmk": tag}, notes=("All hosts have this tag for PVRDMA.",))
    else:
        text = "whether workers get PVRDMA adapters, and the VMkernel adapter of their control channel"
        yield Item("pvrdma", {"vmk": _adapter(cluster) or _DEVICE}, decide=text)
    text = (
        "whether RoCE is lossless, and on which priority. This applies to all ports of the driver; configure the "
        "physical switch in the same way first"
    )
    yield Item("roce", {"priority": 3, "trust": "dscp"}, decide=text)


def fabric_items(cluster: DiscoveredCluster) -> Iterator[Item]:
    """Yield the variables of the RDMA network: nothing if it exists, else a proposal."""
    hosts = _rdma_hosts(cluster)
    if not hosts:
        yield Item(notes=("No host has an RDMA card: training uses TCP.",))
        return
    if used := sorted({card["switch"] for host in hosts for card in _rdma_cards(host) if card["switch"]}):
        note = "dml.vsphere.fabric changes a switch that it did not create only with fabric_adopt."
        yield Item(notes=(f"RDMA cards are on {', '.join(used)}. {note}",))
    if any(card["switch"] is None for host in hosts for card in _rdma_cards(host)):
        yield from _proposal(hosts)


def _proposal(hosts: list[Entry]) -> Iterator[Item]:
    text = "the VLAN of the RDMA network. The physical switch must have it; omit vlan if the network has none"
    groups = [{"name": VMKERNEL, "vlan": 100}, {"name": MACHINES, "vlan": 100}]
    yield Item("fabric_port_groups", groups, decide=text)
    addresses = {host["host"]: f"198.51.100.{number}" for number, host in enumerate(hosts[:254], 1)}
    adapter = {
        "port_group": VMKERNEL,
        "device": _DEVICE,
        "network": "198.51.100.0/24",
        "addresses": addresses,
        "services": [],
    }
    text = "the network and the address of each host in it. The addresses below are from a range for examples"
    yield Item("fabric_adapters", [adapter], decide=text)
    if several := [_free(host) for host in hosts if len(_free(host)) > 1]:
        text = "which RDMA card is the uplink of the switch: a host has several that no switch uses"
        yield Item("fabric_uplink", several[0][0], decide=text)


def machine_network(cluster: DiscoveredCluster) -> str:
    """Return the existing or proposed port group for the PVRDMA adapters of workers."""
    switches = {card["switch"] for host in cluster.readable for card in _rdma_cards(host) if card["switch"]}
    there = [network.name for network in cluster.networks if network.distributed]
    named = [name for name in there if name == MACHINES or any(switch in name for switch in switches)]
    return MACHINES if MACHINES in named or not named else named[0]


def has_rdma(cluster: DiscoveredCluster) -> bool:
    """Return whether a host has an RDMA card."""
    return bool(_rdma_hosts(cluster))


def _rdma_hosts(cluster: DiscoveredCluster) -> list[Entry]:
    return [host for host in cluster.readable if _rdma_cards(host)]


def _rdma_cards(host: Entry) -> list[Entry]:
    return [card for card in host["uplinks"] if card["rdma"]]


def _free(host: Entry) -> list[str]:
    return [card["device"] for card in _rdma_cards(host) if card["switch"] is None]


def _adapter(cluster: DiscoveredCluster) -> str:
    """Return the VMkernel adapter that all hosts have on the switch of an RDMA card; empty if none exists."""
    found = [set(_adapters(host)) for host in _rdma_hosts(cluster)]
    return min(set.intersection(*found), default="") if found else ""


def _adapters(host: Entry) -> Iterator[str]:
    switches = {card["switch"] for card in _rdma_cards(host)} - {None}
    return (adapter["device"] for adapter in host["vmkernel"] if adapter["switch"] in switches)
