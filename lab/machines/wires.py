"""The networks of hypervisor hosts: each host has a namespace with bridges, and the lab's namespace is their switch."""

from __future__ import annotations

from lab.nodes.network import GONE, MANAGEMENT, MOST_MTU, RDMA
from lab.nodes.programs import run

MIGRATION = "migration"
# Visible only to the hosts of one lab: the range for benchmark tests of network devices (RFC 2544).
ADDRESSES = "198.18.0"
SWITCH = 254

Command = tuple[str, ...]


def namespace(lab: str, number: int) -> str:
    """Return the name of a host's namespace."""
    return f"{lab}h{number}"


def address(number: int) -> str:
    """Return the address of a host in the migration network."""
    return f"{ADDRESSES}.{number}"


def switch(lab: str) -> list[Command]:
    """Return the commands that add a migration network to the lab's networks."""
    return [*_bridge(lab, MIGRATION), ("ip", "-n", lab, "address", "add", f"{address(SWITCH)}/24", "dev", MIGRATION)]


def host(lab: str, number: int) -> list[Command]:
    """Return the commands that make a host's namespace and connect it to the lab."""
    inside = namespace(lab, number)
    commands: list[Command] = [("ip", "netns", "add", inside), ("ip", "-n", inside, "link", "set", "lo", "up")]
    for network in (MANAGEMENT, RDMA):
        commands += _bridge(inside, network)
        commands += _cable(lab, inside, f"h{number}-{network}", f"up-{network}", network)
        commands.append(("ip", "-n", inside, "link", "set", f"up-{network}", "master", network, "up"))
    commands += _cable(lab, inside, f"h{number}-{MIGRATION}", MIGRATION, MIGRATION)
    commands.append(("ip", "-n", inside, "link", "set", MIGRATION, "up"))
    commands.append(("ip", "-n", inside, "address", "add", f"{address(number)}/24", "dev", MIGRATION))
    return commands


def cut(lab: str, number: int, taps: tuple[str, ...]) -> None:
    """Disconnect guests' cards from their bridges: they keep their carrier, but no packets pass in either direction."""
    for tap in taps:
        run("ip", "-n", namespace(lab, number), "link", "set", tap, "nomaster", refused=GONE)


def join(lab: str, number: int, taps: tuple[tuple[str, str], ...]) -> None:
    """Reconnect cards, given as pairs of card and network."""
    for tap, network in taps:
        run("ip", "-n", namespace(lab, number), "link", "set", tap, "master", network)


def _bridge(inside: str, name: str) -> list[Command]:
    made = ("ip", "-n", inside, "link", "add", name, "mtu", str(MOST_MTU), "type", "bridge", "forward_delay", "0")
    return [made, ("ip", "-n", inside, "link", "set", name, "up")]


def _cable(lab: str, inside: str, here: str, there: str, network: str) -> list[Command]:
    pair = ("type", "veth", "peer", "name", there, "mtu", str(MOST_MTU), "netns", inside)
    return [
        ("ip", "-n", lab, "link", "add", here, "mtu", str(MOST_MTU), *pair),
        ("ip", "-n", lab, "link", "set", here, "master", network, "up"),
    ]
