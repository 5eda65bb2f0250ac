# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The backend whose guests are nodes: a move is a time of running on, a stun, and going on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lab.hypervisor.backend import HARMS, Move
from lab.nodes.cloudinit import Guest
from lab.nodes.nodes import Nodes
from lab.nodes.programs import LabError

STEPS = 10
COPIED = 90  # percent, when a stun begins


class Containers:
    """Nodes as a hypervisor's guests."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes, self.known, self.network = nodes, nodes.known, nodes.network
        self.stopping = threading.Event()

    @property
    def proxy(self) -> str | None:
        """By which nodes reach the world."""
        return self.nodes.proxy

    @proxy.setter
    def proxy(self, address: str | None) -> None:
        self.nodes.proxy = address

    def prepare(self) -> None:
        """Nodes need nothing."""

    def start(self, guest: Guest, _at: str) -> Guest:
        """Boot a node; all hosts are this machine."""
        return self.nodes.start(guest)

    def wait(self, guest: Guest) -> None:
        """Wait for its sshd."""
        self.nodes.wait(guest)

    def stop(self, key: str) -> None:
        """Cut its power."""
        self.nodes.stop(key)

    def remove(self, key: str) -> None:
        """Take it away."""
        self.nodes.remove(key)

    def move(self, key: str, _target: str, how: Move, tell: Callable[[int], None]) -> None:
        """A freeze with the link cut is all that a guest and its peers see of a move."""
        for step in range(STEPS):
            tell(step * COPIED // STEPS)
            self._pass(how.precopy_seconds / STEPS)
        tell(COPIED)
        self.stun(key, how.stun_seconds)
        if how.fails:
            raise LabError(how.fails)

    def stun(self, key: str, seconds: float) -> None:
        """Freeze it and cut its link; a hypervisor that ends meanwhile lets it go."""
        self._known(key)
        self.nodes.freeze(key)
        try:
            self._pass(seconds)
        finally:
            self.nodes.thaw(key)

    def harm(self, key: str, kind: str) -> None:
        """Kill it, or pull or plug its cables."""
        self._known(key)
        if kind not in HARMS:
            raise LabError(f"No harm is called {kind}: there are {', '.join(HARMS)}.")
        {"kill": self.nodes.stop, "unplug": self.nodes.unplug, "plug": self.nodes.plug}[kind](key)

    def clear(self) -> None:
        """Take all nodes away."""
        self.nodes.clear()

    def _known(self, key: str) -> None:
        if key not in self.nodes.known:
            raise LabError(f"No node {key} is known here: it was never started, or is removed.")

    def _pass(self, seconds: float) -> None:
        if self.stopping.wait(seconds):
            raise LabError("The hypervisor ends.")
