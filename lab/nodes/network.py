# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lab's networks: bridges in a namespace of their own, a cable to each node, one door to this machine."""

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
# Where a tunnel takes all of 10.0.0.0/8, the addresses that RFC 2544 keeps for tests of networks are free.
PLACES = ("10.86", "198.18")
CANDIDATES = [ipaddress.IPv4Network(f"{place}.{third}.0/24") for place in PLACES for third in range(16, 256)]
END_SECONDS = 30
LOOK_SECONDS = 0.05
GONE = ("Cannot find device", "No such file", "No such device")


@dataclass(frozen=True)
class Card:
    """A network card of a node: the network it is in, its address with prefix length, and who is beyond."""

    network: str
    mac: str
    address: str | None = None
    mtu: int = 1500
    gateway: str | None = None


class Network:
    """The networks of one lab. Firewalls of this machine do not see what nodes say to each other."""

    def __init__(self, lab: str) -> None:
        self.lab = lab
        self.door = lab
        self.subnet = ipaddress.IPv4Network("0.0.0.0/32")  # none, until it is built
        self.gateway = ""

    def build(self, subnet: str) -> None:
        """Make the namespace, the bridges and the door, in a subnet that is given or found."""
        with _alone():
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
        """Take all of it away; cables go with it, and programs that run there."""
        self._end_programs()
        run("ip", "link", "delete", self.door, refused=GONE)
        run("ip", "netns", "delete", self.lab, refused=GONE)

    def connect(self, cable: str, pid: int, cards: tuple[Card, ...]) -> None:
        """Plug cards into a node whose first process is ``pid``, and give them their addresses."""
        inside = ("nsenter", "--target", str(pid), "--net", "ip")
        for number, card in enumerate(cards):
            name, here = f"eth{number}", f"{cable}-{number}"
            # That of a node that was just switched off goes only when the kernel comes to it.
            self._ip("link", "delete", here, refused=GONE)
            self._ip("link", "add", here, "mtu", str(MOST_MTU), "type", "veth", "peer", "name", name, "netns", str(pid))
            self._ip("link", "set", here, "master", card.network, "up")
            run(*inside, "link", "set", name, "address", card.mac, "mtu", str(card.mtu), "up")
            if card.address:
                run(*inside, "address", "add", card.address, "brd", "+", "dev", name)
            if card.gateway:
                run(*inside, "route", "add", "default", "via", card.gateway, "dev", name)

    def unplug(self, cable: str, cards: tuple[Card, ...]) -> None:
        """Cut a node off: its cards keep their carrier, but nobody hears it and it hears nobody."""
        for number, _card in enumerate(cards):
            self._ip("link", "set", f"{cable}-{number}", "nomaster", refused=GONE)

    def plug(self, cable: str, cards: tuple[Card, ...]) -> None:
        """Undo that."""
        for number, card in enumerate(cards):
            self._ip("link", "set", f"{cable}-{number}", "master", card.network)

    def _end_programs(self) -> None:
        """Return when nothing runs in the namespace, which would outlive its name."""
        deadline = time.monotonic() + END_SECONDS
        while pids := run("ip", "netns", "pids", self.lab, refused=GONE).split():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            if time.monotonic() > deadline:
                raise LabError(f"In {self.lab} still run {', '.join(pids)}, {END_SECONDS} s after their end.")
            time.sleep(LOOK_SECONDS)

    def _ip(self, *arguments: str, refused: tuple[str, ...] = ()) -> None:
        run("ip", "-n", self.lab, *arguments, refused=refused)


def address_for(what: str) -> str:
    """A MAC address of one's own, always the same."""
    digest = hashlib.sha256(what.encode()).hexdigest()
    return ":".join(["02", *(digest[place : place + 2] for place in range(0, 10, 2))])


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Labs choose their subnets one after another. The lock is on a folder that is there anyway: it leaves no trace."""
    folder = os.open("/run", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def free_subnet() -> str:
    """A subnet that nothing on this machine uses."""
    for subnet in CANDIDATES:
        if not _overlapping(subnet):
            return str(subnet)
    raise LabError("No subnet of 10.86.0.0/16 or 198.18.0.0/16 is free on this machine: give one with --network.")


def wanted_or_free(subnet: str) -> str:
    """This subnet, if nothing on this machine uses it; otherwise one that is found."""
    return AUTO if _overlapping(ipaddress.IPv4Network(subnet)) else subnet


def _refuse_taken(subnet: ipaddress.IPv4Network) -> None:
    if taken := _overlapping(subnet):
        raise LabError(
            f"The lab cannot have the network {subnet}: this machine routes {taken[0]}. "
            f"Give another with --network, or --network {AUTO}."
        )


def _overlapping(subnet: ipaddress.IPv4Network) -> list[str]:
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "table", "all") or "[]")
    found = [route["dst"] for route in routes if route["dst"][0].isdigit() and route.get("type") != "broadcast"]
    return [one for one in found if ipaddress.IPv4Network(one, strict=False).overlaps(subnet)]
