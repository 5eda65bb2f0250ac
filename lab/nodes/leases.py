"""Assigns the addresses of a lab's guests, and waits for their sshd."""

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
GREETING_SECONDS = 30  # sshd in a busy, emulated guest is slow


def address_of(guest: Guest) -> str:
    """Return the management address of a guest."""
    return str(guest.cards[0].address).partition("/")[0]


def leased(guest: Guest, known: Mapping[str, Guest], subnet: ipaddress.IPv4Network) -> Guest:
    """Return a guest whose management card has an address of the lab's network: the requested or a free one."""
    card = guest.cards[0]
    taken = {address_of(other) for other in known.values() if other.key != guest.key}
    before = known.get(guest.key)
    if card.address is None:
        free = (str(host) for host in list(subnet)[FIRST_LEASE:-1] if str(host) not in taken)
        address = address_of(before) if before and address_of(before) not in taken else next(free)
        card = dataclasses.replace(card, address=f"{address}/{subnet.prefixlen}")
    address = str(card.address)
    host = ipaddress.IPv4Interface(address).ip
    if host not in subnet or str(host) in taken:
        why = "another node has it" if str(host) in taken else f"the lab's network is {subnet}"
        raise LabError(f"{guest.name} cannot have the address {address}: {why}. Use another address.")
    return dataclasses.replace(guest, cards=(card, *guest.cards[1:]))


def await_sshd(guest: Guest, seconds: float) -> None:
    """Return when a guest's sshd answers."""
    address, deadline = address_of(guest), time.monotonic() + seconds
    while not _greets(address):
        if time.monotonic() > deadline:
            raise LabError(f"{guest.name} was started, but its sshd at {address} did not answer within {seconds} s.")
        time.sleep(LOOK_SECONDS)


def _greets(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            connection.settimeout(GREETING_SECONDS)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
