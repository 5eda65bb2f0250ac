"""The backend whose guests are nodes: in a move, a node keeps running, is stunned, and then continues."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lab.hypervisor.backend import HARMS, Move
from lab.nodes.cloudinit import Guest
from lab.nodes.nodes import Nodes
from lab.nodes.programs import LabError

STEPS = 10
COPIED = 90  # percent, when a stun starts


class Containers:
    """Nodes as a hypervisor's guests."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes, self.known, self.network = nodes, nodes.known, nodes.network
        self.stopping = threading.Event()

    @property
    def proxy(self) -> str | None:
        """Return the proxy through which nodes reach the outside."""
        return self.nodes.proxy

    @proxy.setter
    def proxy(self, address: str | None) -> None:
        self.nodes.proxy = address

    def prepare(self) -> None:
        """Do nothing: nodes need no preparation."""

    def start(self, guest: Guest, _at: str) -> Guest:
        """Boot a node; this machine stands for all hosts."""
        return self.nodes.start(guest)

    def wait(self, guest: Guest) -> None:
        """Wait for the sshd of a node."""
        self.nodes.wait(guest)

    def stop(self, key: str) -> None:
        """Power a node off without a shutdown."""
        self.nodes.stop(key)

    def shut_down(self, key: str) -> None:
        """Shut a node down, as its systemd does it."""
        self.nodes.shut_down(key)

    def remove(self, key: str) -> None:
        """Remove a node."""
        self.nodes.remove(key)

    def move(self, key: str, _target: str, how: Move, report: Callable[[int], None]) -> None:
        """Freeze a guest and cut its link, which is all that the guest and its peers notice of a move."""
        for step in range(STEPS):
            report(step * COPIED // STEPS)
            self._pass(how.precopy_seconds / STEPS)
        report(COPIED)
        self.stun(key, how.stun_seconds)
        if how.fails:
            raise LabError(how.fails)

    def stun(self, key: str, seconds: float) -> None:
        """Freeze a guest and cut its link; if the hypervisor ends meanwhile, the guest continues."""
        self._known(key)
        self.nodes.freeze(key)
        try:
            self._pass(seconds)
        finally:
            self.nodes.thaw(key)

    def harm(self, key: str, kind: str) -> None:
        """Kill a guest, or unplug or plug its network cables."""
        self._known(key)
        if kind not in HARMS:
            raise LabError(f"Unknown harm {kind}: use one of {', '.join(HARMS)}.")
        {"kill": self.nodes.stop, "unplug": self.nodes.unplug, "plug": self.nodes.plug}[kind](key)

    def clear(self) -> None:
        """Remove all nodes."""
        self.nodes.clear()

    def _known(self, key: str) -> None:
        if key not in self.nodes.known:
            raise LabError(f"The node {key} does not exist: it was never started, or it was removed.")

    def _pass(self, seconds: float) -> None:
        if self.stopping.wait(seconds):
            raise LabError("The hypervisor is shutting down.")
