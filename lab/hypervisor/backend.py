# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the hypervisor asks of whatever runs its guests: nodes today, virtual machines another day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lab.nodes.cloudinit import Guest

HARMS = ("kill", "unplug", "plug")


@dataclass(frozen=True)
class Move:
    """How a move goes: seconds of pre-copy, in which the guest runs, and of stun, in which it does not.

    One that ``fails`` gives up after its stun, with these words; the guest goes on where it was.
    """

    precopy_seconds: float = 1.0
    stun_seconds: float = 0.5
    fails: str = ""


class Cancelled(Exception):
    """The vSphere task of a move was cancelled while its guest still ran at the source."""


class Backend(Protocol):
    """Guests by their key. Every call returns when it is done, or raises LabError."""

    def start(self, guest: Guest) -> Guest:
        """Boot a guest, making it if it is not there; the same with the addresses that it got."""

    def wait(self, guest: Guest) -> None:
        """Return when the guest lets people in."""

    def stop(self, key: str) -> None:
        """Cut its power."""

    def remove(self, key: str) -> None:
        """Take it and its disks away; one that was never made is no error."""

    def move(self, key: str, how: Move, tell: Callable[[int], None]) -> None:
        """Move it, telling the progress in percent; ``tell`` raises Cancelled."""

    def stun(self, key: str, seconds: float) -> None:
        """Let it neither run nor be heard for a time."""

    def harm(self, key: str, kind: str) -> None:
        """Do it one of HARMS."""
