# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The addresses of a lab's guests: given, or found; and whether somebody answers there."""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
import time
from collections.abc import Mapping

from lab.nodes.cloudinit import Guest
from lab.nodes.programs import LabError

FIRST_LEASE = 100
LOOK_SECONDS = 0.05
GREETING_SECONDS = 30  # an emulated sshd that has much to do takes its time


def address_of(guest: Guest) -> str:
    """Where a guest is reached."""
    return str(guest.cards[0].address).partition("/")[0]


def leased(guest: Guest, known: Mapping[str, Guest], subnet: ipaddress.IPv4Network) -> Guest:
    """The lab's DHCP: the management card has an address of the lab's network, given or found."""
    card = guest.cards[0]
    taken = {address_of(one) for one in known.values() if one.key != guest.key}
    before = known.get(guest.key)
    if card.address is None:
        free = (str(one) for one in list(subnet)[FIRST_LEASE:-1] if str(one) not in taken)
        address = address_of(before) if before and address_of(before) not in taken else next(free)
        card = dataclasses.replace(card, address=f"{address}/{subnet.prefixlen}")
    address = str(card.address)
    host = ipaddress.IPv4Interface(address).ip
    if host not in subnet or str(host) in taken:
        why = "another node has it" if str(host) in taken else f"the lab's network is {subnet}"
        raise LabError(f"{guest.name} cannot have the address {address}: {why}. Give it another one.")
    return dataclasses.replace(guest, cards=(card, *guest.cards[1:]))


def await_sshd(guest: Guest, seconds: float) -> None:
    """Return when a guest's sshd answers."""
    address, deadline = address_of(guest), time.monotonic() + seconds
    while not _greets(address):
        if time.monotonic() > deadline:
            raise LabError(f"{guest.name} was started, but its sshd at {address} said nothing in {seconds} s.")
        time.sleep(LOOK_SECONDS)


def _greets(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            connection.settimeout(GREETING_SECONDS)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
