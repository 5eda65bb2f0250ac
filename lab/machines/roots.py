"""The parts of virtual machines: a root file system with libvirt and QEMU, and the guests' image, each built once."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.machines import kept
from lab.nodes import surroundings
from lab.nodes.programs import LabError, run

SUITE = "bookworm"
ENGINE = (
    *("libvirt-daemon", "libvirt-daemon-driver-qemu", "libvirt-clients", "qemu-system-x86", "qemu-utils"),
    *("iproute2", "procps"),
)
# The kernel is the standard one, because the cloud kernel lacks rdma_rxe. debootstrap ignores virtual packages, so
# python3-cffi-backend is listed.
GUEST = (
    *("systemd", "systemd-sysv", "libpam-systemd", "dbus", "udev", "kmod", "procps", "iproute2", "iputils-ping"),
    *("linux-image-amd64", "initramfs-tools", "cloud-init", "python3-cffi-backend", "openssh-server"),
    *("sudo", "ca-certificates", "qemu-guest-agent", "gpg", "python3", "python3-apt", "openmpi-bin"),
    *("rdma-core", "ibverbs-providers", "ibverbs-utils", "perftest", "acl"),
)
FOLDER = Path(__file__).parent / "guest"
FILES = {  # path in the guest: (name here, mode)
    "usr/local/bin/vmware-rpctool": ("vmware-rpctool.sh", 0o755),
    "etc/cloud/cloud.cfg.d/90_lab.cfg": ("cloud.cfg", 0o644),
    "etc/udev/rules.d/90-lab-rdma.rules": ("rdma.rules", 0o644),
    "etc/systemd/journald.conf.d/lab.conf": ("journald.conf", 0o644),
    "etc/initramfs-tools/conf.d/lab": ("initramfs.conf", 0o644),
    "etc/initramfs-tools/modules": ("modules", 0o644),
    "etc/hosts": ("hosts", 0o644),  # written by Debian's installer, but not by debootstrap
}
# Units that a short-lived guest does not need, and that slow down its boot in emulation.
MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_reap.service", "e2scrub_all.timer", "fstrim.timer"),
    *("dpkg-db-backup.timer", "systemd-pstore.service", "serial-getty@ttyS0.service", "getty@tty1.service"),
)
ENABLED = ("systemd-networkd.service",)
# Files that must differ between guests, that come from this machine, or that are downloaded again.
SHED = (
    *("etc/ssh/ssh_host_*", "var/lib/apt/lists/*", "var/cache/apt/archives/*.deb", "var/log/*.log"),
    *("etc/apt/sources*", "etc/resolv.conf", "etc/hostname"),
)
BARE = ("usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*", "boot/initrd*")
SPARE_MIB = 3072  # for Docker and a container image in the guest; unwritten blocks take no space
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Roots:
    """The build results: the engine's root, and the guests' disk, kernel and initial RAM disk."""

    engine: Path
    disk: Path
    kernel: Path
    initrd: Path


def ensure(store: Path, report: Callable[[str], None]) -> Roots:
    """Build missing parts, and remove unused results of earlier recipes."""
    store = store.resolve()
    store.mkdir(parents=True, exist_ok=True)
    with (store / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        engine, guest = store / f"engine-{_digest(ENGINE)}", store / f"guest-{guest_digest()}"
        for folder, build in ((engine, _build_engine), (guest, _build_guest)):
            if not folder.exists():
                report(f"Building {folder.name} for virtual machines (once, takes minutes)")
                part = _fresh(store / f"{folder.name}.part")
                build(part, store / "packages")
                part.rename(folder)
            kept.hold(folder)
            kept.remove_others(folder, f"{folder.name.partition('-')[0]}-*")
    return Roots(engine, guest / "root.ext4", guest / "vmlinuz", guest / "initrd.img")


def guest_digest() -> str:
    """Return a hash of the guests' recipe."""
    return _digest(
        (
            *GUEST,
            *MASKED,
            *ENABLED,
            *SHED,
            *BARE,
            *FILES,
            str(SPARE_MIB),
            *((FOLDER / here).read_text() for here, _mode in FILES.values()),
        )
    )


def _digest(parts: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps([SUITE, *parts]).encode()).hexdigest()[:12]


def _fresh(part: Path) -> Path:
    """Return a path for a build after removing leftovers of a killed build, but never through a mount."""
    for inner in ("proc", "sys", "root/proc", "root/sys"):
        while (part / inner).is_mount():
            run("umount", str(part / inner))
    shutil.rmtree(part, ignore_errors=True)
    return part


def _bootstrap(root: Path, packages: tuple[str, ...], kept: Path) -> None:
    kept.mkdir(exist_ok=True)
    root.mkdir(parents=True)
    options = ["--variant=minbase", f"--include={','.join(packages)}", f"--cache-dir={kept}"]
    run("debootstrap", *options, SUITE, str(root), surroundings.mirror(SUITE))
    for pattern in SHED:
        _remove(root, pattern)


def _build_engine(root: Path, kept: Path) -> None:
    _bootstrap(root, ENGINE, kept)
    # Without these users and groups, libvirtd ends silently; normally libvirt-daemon-system's postinst makes them.
    run("chroot", str(root), "groupadd", "--system", "libvirt")
    run("chroot", str(root), "groupadd", "--system", "libvirt-qemu")
    run("chroot", str(root), "useradd", "--system", "--gid", "libvirt-qemu", "--no-create-home", "libvirt-qemu")
    _remove(root, "etc/libvirt/qemu/networks/autostart/*")
    for pattern in BARE:
        _remove(root, pattern)


def _build_guest(folder: Path, kept: Path) -> None:
    root = folder / "root"
    _bootstrap(root, GUEST, kept)
    _customize(root)
    _take_kernel(root, folder)
    mib = int(run("du", "--summarize", "--block-size=1M", str(root)).split()[0]) + SPARE_MIB
    run("mkfs.ext4", "-q", "-F", "-L", "root", "-d", str(root), str(folder / "root.ext4"), f"{mib}M")
    shutil.rmtree(root)


def _customize(root: Path) -> None:
    """Add the lab's files, and remove files that no guest needs."""
    for there, (here, mode) in FILES.items():
        path = root / there
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((FOLDER / here).read_text())
        path.chmod(mode)
    run("systemctl", f"--root={root}", "mask", *MASKED)
    run("systemctl", f"--root={root}", "enable", *ENABLED)
    for pattern in BARE:
        _remove(root, pattern)
    (root / "etc/machine-id").write_text("")
    (root / "etc/fstab").write_text("/dev/vda / ext4 errors=remount-ro,noatime 0 0\n")


def _take_kernel(root: Path, folder: Path) -> None:
    """Put the kernel and its initial RAM disk next to the disk, because QEMU boots them directly."""
    found = sorted(root.glob("boot/vmlinuz-*"))
    if not found:
        raise LabError(f"{root} has no kernel: debootstrap did not install one. See its log in debootstrap/.")
    version = found[-1].name.removeprefix("vmlinuz-")
    run("chroot", str(root), "mkinitramfs", "-o", "/boot/lab.img", version, environment={**os.environ, "PATH": PATH})
    shutil.move(root / "boot/lab.img", folder / "initrd.img")
    shutil.copyfile(found[-1], folder / "vmlinuz")


def _remove(root: Path, pattern: str) -> None:
    for path in root.glob(pattern):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
