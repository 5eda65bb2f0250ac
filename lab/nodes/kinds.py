"""Kinds of nodes: all run Debian with systemd and sshd, and some have additional parts."""

from __future__ import annotations

from pathlib import Path

from lab.nodes import image
from lab.nodes.cloudinit import Guest

# NET_ADMIN affects only the node's network. Never SYS_TIME: all nodes share one clock.
CAPABILITIES = "NET_ADMIN,NET_RAW,AUDIT_WRITE,SYS_CHROOT,SYS_PTRACE"


class Kind:
    """Plain nodes, and the methods that another kind overrides."""

    suite = image.SUITE

    def __init__(self, suite: str = image.SUITE) -> None:
        self.suite, self.image = suite, image.tag(suite)
        self.rights: tuple[str, ...] = ("--cap-add", CAPABILITIES)

    def volumes(self, disk: Path) -> list[str]:
        """Return the node's volumes in addition to the lab's shares; ``disk`` is a folder that is removed with it."""
        del disk
        return []

    def files(self, guest: Guest, address: str) -> dict[str, str]:
        """Return the files that a node with this address gets at boot, by their path on the node."""
        del guest, address
        return {}
