"""The programs that nodes need on this machine, and a function to run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

COMMON = ("debootstrap", "ip", "nsenter", "ssh-keygen")
PROGRAMS = (*COMMON, "podman", "runc", "tar")
MACHINE_PROGRAMS = (*COMMON, "unshare", "chroot", "mkfs.ext4", "bash")


class LabError(RuntimeError):
    """An error in one sentence: the attempt, the message, and the remedy."""


def require(machines: bool = False) -> None:
    """Raise LabError if nodes, or virtual machines, cannot be made on this machine."""
    if os.geteuid() != 0:
        raise LabError("Nodes cannot be made: network namespaces need root. Run the command as root or with sudo.")
    programs, target = (MACHINE_PROGRAMS, "setup-machines") if machines else (PROGRAMS, "setup-nodes")
    if missing := [name for name in programs if shutil.which(name) is None]:
        raise LabError(f"Nodes cannot be made: {', '.join(missing)} not found on this machine. Run make {target}.")


def can_make_nodes(machines: bool = False) -> bool:
    """Return whether this machine can run nodes, or virtual machines."""
    return os.geteuid() == 0 and all(shutil.which(name) for name in (MACHINE_PROGRAMS if machines else PROGRAMS))


def run(
    *command: str, text: str | None = None, environment: dict[str, str] | None = None, refused: Sequence[str] = ()
) -> str:
    """Run a program and return its output; errors whose message contains one of ``refused`` are ignored."""
    done = subprocess.run(
        command,
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode and not any(word in done.stderr for word in refused):
        raise LabError(f"{' '.join(command[:6])} failed ({done.returncode}): {done.stderr.strip()[-800:]}")
    return done.stdout
