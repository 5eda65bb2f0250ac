"""The interface between the hypervisor and its backends: nodes, or virtual machines."""

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
    """The settings of a move: seconds of pre-copy, in which the guest runs, and of stun, in which it does not.

    If ``fails`` is set, the move fails after its stun with this message, and the guest continues at its source.
    ``mib_per_second`` limits the copying of a virtual machine unless it is 0, and ``stun_seconds`` is then a minimum.
    """

    precopy_seconds: float = 1.0
    stun_seconds: float = 0.5
    fails: str = ""
    mib_per_second: int = 0


class Cancelled(Exception):
    """The vSphere task of a move was cancelled while its guest still ran at the source."""


class Backend(Protocol):
    """A backend that runs guests, by their key. Every call returns when it is done, or raises LabError."""

    known: dict[str, Guest]
    network: Network
    proxy: str | None  # through which guests reach the outside
    stopping: threading.Event

    def prepare(self) -> None:
        """Add what the backend needs to the lab's network, which already exists."""

    def start(self, guest: Guest, at: str) -> Guest:
        """Boot a guest on a host, making it if it does not exist, and return it with its addresses."""

    def wait(self, guest: Guest) -> None:
        """Return when the guest accepts logins."""

    def stop(self, key: str) -> None:
        """Power a guest off without a shutdown."""

    def shut_down(self, key: str) -> None:
        """Shut a guest down and power it off; a virtual machine is only powered off."""

    def remove(self, key: str) -> None:
        """Remove a guest and its disks; a guest that does not exist is not an error."""

    def move(self, key: str, target: str, how: Move, report: Callable[[int], None]) -> None:
        """Move a guest to a host and report the progress in percent; ``report`` raises Cancelled."""

    def stun(self, key: str, seconds: float) -> None:
        """Freeze a guest and disconnect it from the network for a time."""

    def harm(self, key: str, kind: str) -> None:
        """Apply one of HARMS to a guest."""

    def clear(self) -> None:
        """Remove all guests, also those of a killed lab."""
