# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the hypervisor asks of whatever runs its guests: nodes, or virtual machines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lab.nodes.cloudinit import Guest
from lab.nodes.network import Network

HARMS = ("kill", "unplug", "plug")


@dataclass(frozen=True)
class Move:
    """How a move goes: seconds of pre-copy, in which the guest runs, and of stun, in which it does not.

    One that ``fails`` gives up after its stun, with these words; the guest goes on where it was. A virtual machine is
    copied for as long as that takes, with ``mib_per_second`` at most where that is not 0, and stands at least so long.
    """

    precopy_seconds: float = 1.0
    stun_seconds: float = 0.5
    fails: str = ""
    mib_per_second: int = 0


class Cancelled(Exception):
    """The vSphere task of a move was cancelled while its guest still ran at the source."""


class Backend(Protocol):
    """Guests by their key. Every call returns when it is done, or raises LabError."""

    known: dict[str, Guest]
    network: Network
    proxy: str | None  # by which guests reach the world
    stopping: threading.Event

    def prepare(self) -> None:
        """Add what it needs to the lab's network, which is there now."""

    def start(self, guest: Guest, at: str) -> Guest:
        """Boot a guest on a host, making it if it is not there; the same with the addresses that it got."""

    def wait(self, guest: Guest) -> None:
        """Return when the guest lets people in."""

    def stop(self, key: str) -> None:
        """Cut its power."""

    def remove(self, key: str) -> None:
        """Take it and its disks away; one that was never made is no error."""

    def move(self, key: str, target: str, how: Move, tell: Callable[[int], None]) -> None:
        """Move it to a host, telling the progress in percent; ``tell`` raises Cancelled."""

    def stun(self, key: str, seconds: float) -> None:
        """Let it neither run nor be heard for a time."""

    def harm(self, key: str, kind: str) -> None:
        """Do it one of HARMS."""

    def clear(self) -> None:
        """Take all guests away, also those of a lab that was killed."""
