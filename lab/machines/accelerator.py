"""Detects how guests run: with KVM if a guest's kernel boots with it, otherwise in emulation."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab.machines.domain import KVM, TCG
from lab.machines.roots import Roots

# On some machines /dev/kvm opens and the firmware starts, but the kernel never boots.
TRIAL_SECONDS = 20
DEVICE = Path("/dev/kvm")
# This init does not exist. When the kernel reports that, it has booted, and it ends with a panic.
REACHED = b"Failed to execute /lab-has-no-init"
COMMAND_LINE = "console=ttyS0 panic=-1 rdinit=/lab-has-no-init"


INSIDE = """\
mount --bind /dev "$1/dev"
mount --bind "$2" "$1/mnt"
root=$1
shift 2
exec chroot "$root" "$@"
"""


def detect(roots: Roots) -> str:
    """Return the type for libvirt's domains."""
    return KVM if DEVICE.exists() and _boots(roots) else TCG


def command(roots: Roots) -> list[str]:
    """Return the command that boots the guests' kernel in the engine's root, and ends when the kernel has booted."""
    machine = ["-machine", "q35,accel=kvm", "-cpu", "host", "-m", "512", "-nodefaults", "-no-reboot"]
    files = ["-kernel", f"/mnt/{roots.kernel.name}", "-initrd", f"/mnt/{roots.initrd.name}", "-append", COMMAND_LINE]
    qemu = ["qemu-system-x86_64", *machine, *files, "-display", "none", "-serial", "stdio"]
    return ["unshare", "--mount", "bash", "-ec", INSIDE, "bash", str(roots.engine), str(roots.kernel.parent), *qemu]


def _boots(roots: Roots) -> bool:
    try:
        done = subprocess.run(
            command(roots), stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    if REACHED not in done.stdout:
        print(f"KVM is not used: {done.stderr.decode(errors='replace').strip()[-400:]}", flush=True)
    return REACHED in done.stdout
