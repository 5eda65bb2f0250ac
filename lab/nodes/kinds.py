# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kinds of nodes: all are Debian with systemd and sshd, and some are more."""

from __future__ import annotations

from pathlib import Path

from lab.nodes import image
from lab.nodes.cloudinit import Guest

# NET_ADMIN is for the node's own network alone. Never SYS_TIME: there is one clock for all.
CAPABILITIES = "NET_ADMIN,NET_RAW,AUDIT_WRITE,SYS_CHROOT,SYS_PTRACE"


class Kind:
    """Plain nodes, and what another kind may have instead."""

    def __init__(self) -> None:
        self.image = image.tag()
        self.rights: tuple[str, ...] = ("--cap-add", CAPABILITIES)

    def volumes(self, disk: Path) -> list[str]:
        """Folders that a node sees beside the lab's shares; ``disk`` is for one of its own, which goes with it."""
        del disk
        return []

    def files(self, guest: Guest, address: str) -> dict[str, str]:
        """Files that a node at this address gets when it boots, by their path there."""
        del guest, address
        return {}
