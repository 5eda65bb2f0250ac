"""The nodes' images: a Debian from debootstrap each, built once and tagged with a hash of its recipe."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.nodes import surroundings
from lab.nodes.podman import Podman
from lab.nodes.programs import LabError, run

SUITE = "bookworm"
SUITES = (SUITE, "trixie")  # Debian 12, the default, and Debian 13
PACKAGES = (
    *("systemd", "systemd-sysv", "libpam-systemd", "dbus", "kmod", "procps", "iproute2", "iputils-ping"),
    *("openssh-server", "openssh-client", "sudo", "ca-certificates", "gpg", "python3", "python3-apt"),
)
GUEST = Path(__file__).parent / "guest"
FILES = {  # path in the image: (name here, mode)
    "usr/local/sbin/lab-guest": ("lab_guest.py", 0o755),
    "etc/systemd/system/lab-guest.service": ("lab-guest.service", 0o644),
    "etc/systemd/system/ssh.service.d/lab.conf": ("ssh.conf", 0o644),
    "etc/sudo.conf": ("sudo.conf", 0o644),
    "etc/ssh/sshd_config.d/lab.conf": ("sshd.conf", 0o644),
    "etc/dpkg/dpkg.cfg.d/lab": ("dpkg.conf", 0o644),
}
# With cgroup v1, a container does not notice that a user's service manager has ended, and logins wait for it.
MASKED = ("user@.service",)
CHANGES = ('CMD ["/lib/systemd/systemd"]', "STOPSIGNAL SIGRTMIN+3")
# Files that must differ between nodes, or that are downloaded again.
SHED = (
    "etc/ssh/ssh_host_*",
    "var/lib/apt/lists/*",
    "var/cache/apt/archives/*.deb",
    "var/log/*.log",
    "etc/apt/sources*",
)


def tag(suite: str = SUITE) -> str:
    """Return the name of a suite's image, which contains a hash of the recipe."""
    parts = [
        suite,
        *PACKAGES,
        *MASKED,
        *CHANGES,
        *SHED,
        *FILES,
        *((GUEST / here).read_text() for here, _mode in FILES.values()),
    ]
    own = "" if suite == SUITE else f"-{suite}"
    return f"localhost/dml-lab-node{own}:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]}"


def ensure(podman: Podman, report: Callable[[str], None], suite: str = SUITE) -> str:
    """Build the image of a suite if it does not exist, and return its name."""
    name = tag(suite)
    with (podman.store / "image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if name not in podman("images", "--format", "{{.Repository}}:{{.Tag}}").split():
            report(f"Building the node image {name} (once, takes minutes)")
            _build(podman, name, suite)
            _remove_older(podman, name)
    return name


def _build(podman: Podman, name: str, suite: str) -> None:
    _remove_leftovers(podman.store)
    root = Path(tempfile.mkdtemp(prefix="rootfs-", dir=podman.store))
    root.chmod(0o755)
    mirror = surroundings.mirror(suite)
    run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", suite, str(root), mirror)
    # On a busy machine, debootstrap may leave its mounts, and the archive would contain the files of /proc.
    _unmount(root)
    for there, (here, mode) in FILES.items():
        path = root / there
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((GUEST / here).read_text())
        path.chmod(mode)
    run("systemctl", f"--root={root}", "enable", "lab-guest.service")
    run("systemctl", f"--root={root}", "mask", *MASKED)
    for pattern in SHED:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (root / "etc/machine-id").write_text("")
    _import(podman, root, name)
    shutil.rmtree(root)


def _remove_leftovers(store: Path) -> None:
    """Remove leftovers of a killed build, but never through a mount into this machine."""
    for left in store.glob("rootfs-*"):
        _unmount(left)
        shutil.rmtree(left)


def _unmount(root: Path) -> None:
    for path in (root / "proc", root / "sys"):
        while path.is_mount():
            run("umount", str(path))


def _remove_older(podman: Podman, name: str) -> None:
    """Remove images of other recipes, unless a node of another lab uses them."""
    for other in podman("images", "--format", "{{.Repository}}:{{.Tag}}", name.partition(":")[0]).split():
        if other != name:
            podman("rmi", other, refused=("image is in use", "image used by"))


def _import(podman: Podman, root: Path, name: str) -> None:
    changes = [word for change in CHANGES for word in ("--change", change)]
    packed = subprocess.Popen(["tar", "--numeric-owner", "--xattrs", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    command = ["podman", "import", *changes, "-", name]
    done = subprocess.run(command, stdin=packed.stdout, capture_output=True, env=podman.environment, check=False)
    if packed.wait() or done.returncode:
        raise LabError(f"The node image could not be imported: {done.stderr.decode().strip()[-800:]}")


if __name__ == "__main__":
    STORE = Podman(Path(sys.argv[1]).resolve())
    STORE.prepare()
    ensure(STORE, print)
