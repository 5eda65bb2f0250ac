"""The images of nodes and pods, built once; pod images are stored in a prepared folder of containerd."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.kubernetes import binaries, layers
from lab.kubernetes.built import Built
from lab.kubernetes.layers import Layer
from lab.kubernetes.member import RIGHTS
from lab.nodes import image
from lab.nodes.podman import Podman

HERE = Path(__file__).parent
# Units that would change settings of the host machine, or that a node does not need.
MASKED = (
    *("systemd-sysctl.service", "systemd-modules-load.service", "systemd-udevd.service", "systemd-remount-fs.service"),
    *("systemd-udev-trigger.service", "systemd-timesyncd.service", "systemd-random-seed.service"),
    *("systemd-update-utmp.service", "getty@tty1.service", "console-getty.service"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount"),
    *("dev-hugepages.mount", "dev-mqueue.mount", "proc-sys-fs-binfmt_misc.automount"),
)
NODE = Layer(
    "localhost/dml-lab-kubernetes-node",
    ("containerd", "runc", "containernetworking-plugins", "nftables", "iptables", "conntrack", "ethtool", "socat"),
    HERE / "node",
    (
        ("etc/containerd/config.toml", "containerd.toml"),
        ("etc/systemd/system/kubelet.service", "kubelet.service"),
        ("etc/systemd/system/kube-proxy.service", "kube-proxy.service"),
        ("etc/systemd/journald.conf.d/lab.conf", "journald.conf"),
        ("usr/local/sbin/lab-kubelet", "lab-kubelet"),
        ("usr/local/sbin/lab-fill", "fill"),
    ),
    f"systemctl enable kubelet.service kube-proxy.service containerd.service\nsystemctl mask {' '.join(MASKED)}\n",
    image.CHANGES,
)
# Like the MPI Operator's images: an sshd that root and mpiuser can run, and an ssh without prompts.
TRAINING = Layer(
    "localhost/dml-lab-openmpi",
    ("openmpi-bin",),
    HERE / "pods",
    (("etc/ssh/sshd_config.d/pods.conf", "sshd.conf"), ("etc/ssh/ssh_config.d/pods.conf", "ssh.conf")),
    (HERE / "pods" / "training.sh").read_text(),
    ('CMD ["/bin/bash"]',),
)
OPENMPI, HOROVOD, PAUSE, DEVICES = (f"lab.local/{name}:1" for name in ("openmpi", "horovod", "pause", "devices"))
OPERATOR = "docker.io/mpioperator/mpi-operator"
VENV = "/opt/dml/horovod"


def ensure(podman: Podman, store: Path, venv: Path, report: Callable[[str], None]) -> Built:
    """Build missing parts. ``venv`` is the lab's Horovod environment; if it does not exist, pods have only Open MPI."""
    programs = binaries.ensure(store, report)
    image.ensure(podman, report)
    with (store / "images.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node = layers.ensure(podman, NODE, report)
        folder = store / f"containerd-{_key(venv)}"
        if not folder.exists():
            report(f"Importing the pod images into {folder} (once, takes minutes)")
            _fill(podman, folder, programs, _pods(podman, programs, venv, report))
            for other in store.glob("containerd-*"):
                if other != folder:
                    shutil.rmtree(other)
    return Built(programs, node, folder)


def has_horovod(venv: Path) -> bool:
    """Return whether the lab's environment is complete: its role writes this file last."""
    return (venv / "horovod.sha256").exists()


def _key(venv: Path) -> str:
    parts = [binaries.key(), NODE.tag, TRAINING.tag]
    if has_horovod(venv):
        parts += [(venv / name).read_text() for name in ("horovod.sha256", "requirements.txt")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _pods(podman: Podman, programs: Path, venv: Path, report: Callable[[str], None]) -> list[str]:
    """Build the pod images in podman's store and return their names."""
    release = binaries.operator_version((binaries.MODULE / "go.mod").read_text())
    names = [PAUSE, DEVICES, f"{OPERATOR}:{release}", OPENMPI]
    for name, program in zip(names, ("pause", "devices", "mpi-operator")):
        pack(podman, programs / program, name, f"opt/{program}")
    training = layers.ensure(podman, TRAINING, report)
    podman("tag", training, OPENMPI)
    if has_horovod(venv):
        container = "build-horovod"
        podman("rm", "--force", "--ignore", container)
        copy = f"mkdir -p {VENV} && cp -a /venv/. {VENV} && rm -f {VENV}/*.whl"
        podman(
            "run", "--name", container, "--network", "none", "--volume", f"{venv}:/venv:ro", training, "sh", "-c", copy
        )
        podman("commit", "--quiet", container, HOROVOD)
        podman("rm", container)
        names.append(HOROVOD)
    return names


def pack(podman: Podman, program: Path, name: str, path: str, *changes: str) -> None:
    """Make an image that contains only one program, at ``path``."""
    with tempfile.NamedTemporaryFile(dir=podman.store, suffix=".tar") as archive:
        with tarfile.open(archive.name, "w") as tar:
            tar.add(program, path)
            scratch = tarfile.TarInfo("tmp")
            scratch.type, scratch.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(scratch)
        podman("import", "--quiet", "--change", f'ENTRYPOINT ["/{path}"]', *changes, archive.name, name)


def _fill(podman: Podman, folder: Path, programs: Path, names: list[str]) -> None:
    """Import the images into a folder of containerd with the nodes' containerd, and remove them from podman."""
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    archive = programs.parent / "images.tar"
    archive.unlink(missing_ok=True)
    podman("save", "--quiet", "--multi-image-archive", "--format", "docker-archive", "--output", str(archive), *names)
    volumes = ["--volume", f"{part}:/var/lib/containerd", "--volume", f"{archive}:/images.tar:ro"]
    podman("run", "--rm", "--network", "none", *RIGHTS, *volumes, NODE.tag, "/usr/local/sbin/lab-fill")
    podman("rmi", *names)
    archive.unlink()
    part.rename(folder)
