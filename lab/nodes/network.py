"""The lab's networks: bridges in a separate namespace, a veth pair to each node, and one to this machine."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import ipaddress
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

from lab.nodes.programs import LabError, run

MANAGEMENT, RDMA = "management", "rdma"
MOST_MTU = 9000
AUTO = "auto"
# If a VPN routes all of 10.0.0.0/8, the addresses that RFC 2544 reserves for network tests are free.
PLACES = ("10.86", "198.18")
CANDIDATES = [ipaddress.IPv4Network(f"{place}.{third}.0/24") for place in PLACES for third in range(16, 256)]
END_SECONDS = 30
LOOK_SECONDS = 0.05
GONE = ("Cannot find device", "No such file", "No such device")


@dataclass(frozen=True)
class Card:
    """A network card of a node: its network, its address with prefix length, and its gateway."""

    network: str
    mac: str
    address: str | None = None
    mtu: int = 1500
    gateway: str | None = None


class Network:
    """The networks of one lab. Firewalls of this machine do not affect traffic between nodes."""

    def __init__(self, lab: str) -> None:
        self.lab = lab
        self.door = lab
        self.subnet = ipaddress.IPv4Network("0.0.0.0/32")  # not set before the network is built
        self.gateway = ""

    def build(self, subnet: str) -> None:
        """Make the namespace, the bridges and the link to this machine, in the given or a free subnet."""
        with _locked():
            if subnet != AUTO:
                _refuse_taken(ipaddress.IPv4Network(subnet))
            self.subnet = ipaddress.IPv4Network(free_subnet() if subnet == AUTO else subnet)
            self.gateway = str(self.subnet[1])
            self._build()

    def _build(self) -> None:
        run("ip", "netns", "add", self.lab)
        for bridge in (MANAGEMENT, RDMA):
            mac = address_for(f"{self.lab}-{bridge}")
            self._ip(
                "link", "add", bridge, "address", mac, "mtu", str(MOST_MTU), "type", "bridge", "forward_delay", "0"
            )
            self._ip("link", "set", bridge, "up")
        run("ip", "link", "add", self.door, "type", "veth", "peer", "name", "door", "netns", self.lab)
        self._ip("link", "set", "door", "master", MANAGEMENT, "up")
        run("ip", "address", "add", f"{self.gateway}/{self.subnet.prefixlen}", "dev", self.door)
        run("ip", "link", "set", self.door, "up")

    def remove(self) -> None:
        """Remove the networks, with the cables and programs in their namespace."""
        self._end_programs()
        run("ip", "link", "delete", self.door, refused=GONE)
        run("ip", "netns", "delete", self.lab, refused=GONE)

    def connect(self, cable: str, pid: int, cards: tuple[Card, ...]) -> None:
        """Plug cards into a node whose first process is ``pid``, and give them their addresses."""
        inside = ("nsenter", "--target", str(pid), "--net", "ip")
        for number, card in enumerate(cards):
            name, here = f"eth{number}", f"{cable}-{number}"
            # The kernel removes the cable of a node that was just powered off with a delay.
            self._ip("link", "delete", here, refused=GONE)
            self._ip("link", "add", here, "mtu", str(MOST_MTU), "type", "veth", "peer", "name", name, "netns", str(pid))
            self._ip("link", "set", here, "master", card.network, "up")
            run(*inside, "link", "set", name, "address", card.mac, "mtu", str(card.mtu), "up")
            if card.address:
                run(*inside, "address", "add", card.address, "brd", "+", "dev", name)
            if card.gateway:
                run(*inside, "route", "add", "default", "via", card.gateway, "dev", name)

    def unplug(self, cable: str, cards: tuple[Card, ...]) -> None:
        """Disconnect a node: its cards keep their carrier, but no packets pass in either direction."""
        for number, _card in enumerate(cards):
            self._ip("link", "set", f"{cable}-{number}", "nomaster", refused=GONE)

    def plug(self, cable: str, cards: tuple[Card, ...]) -> None:
        """Reconnect a node."""
        for number, card in enumerate(cards):
            self._ip("link", "set", f"{cable}-{number}", "master", card.network)

    def _end_programs(self) -> None:
        """Kill all programs in the namespace, which would otherwise outlive its name, and return when they ended."""
        deadline = time.monotonic() + END_SECONDS
        while pids := run("ip", "netns", "pids", self.lab, refused=GONE).split():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            if time.monotonic() > deadline:
                raise LabError(
                    f"The processes {', '.join(pids)} in {self.lab} still run {END_SECONDS} s after SIGKILL."
                )
            time.sleep(LOOK_SECONDS)

    def _ip(self, *arguments: str, refused: tuple[str, ...] = ()) -> None:
        run("ip", "-n", self.lab, *arguments, refused=refused)


def address_for(name: str) -> str:
    """Return the MAC address for a name, always the same."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return ":".join(["02", *(digest[place : place + 2] for place in range(0, 10, 2))])


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Let labs choose their subnets one after another, with a lock on an existing folder, which leaves no trace."""
    folder = os.open("/run", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def free_subnet() -> str:
    """Return a subnet that this machine does not use."""
    for subnet in CANDIDATES:
        if not _overlapping(subnet):
            return str(subnet)
    raise LabError("No subnet of 10.86.0.0/16 or 198.18.0.0/16 is free on this machine: choose one with --network.")


def requested_or_free(subnet: str) -> str:
    """Return this subnet if this machine does not use it, otherwise AUTO."""
    return AUTO if _overlapping(ipaddress.IPv4Network(subnet)) else subnet


def _refuse_taken(subnet: ipaddress.IPv4Network) -> None:
    if taken := _overlapping(subnet):
        raise LabError(
            f"The lab cannot have the network {subnet}: this machine routes {taken[0]}. "
            f"Use another one with --network, or --network {AUTO}."
        )


def _overlapping(subnet: ipaddress.IPv4Network) -> list[str]:
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "table", "all") or "[]")
    found = [route["dst"] for route in routes if route["dst"][0].isdigit() and route.get("type") != "broadcast"]
    return [network for network in found if ipaddress.IPv4Network(network, strict=False).overlaps(subnet)]
