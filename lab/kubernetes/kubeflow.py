"""Kubeflow Trainer, JobSet and Kueue, built from their pinned Go modules, for a lab's Kubernetes that queues jobs."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from lab.kubernetes import binaries, images
from lab.kubernetes.cluster import Cluster
from lab.nodes.podman import Podman
from lab.nodes.programs import run

MODULE = Path(__file__).parent / "trainer"
TRAINER, JOBSET, KUEUE = "github.com/kubeflow/trainer/v2", "sigs.k8s.io/jobset", "sigs.k8s.io/kueue"
# Each package, its program, and its image.
PROGRAMS = (
    (f"{TRAINER}/cmd/trainer-controller-manager", "trainer"),
    (JOBSET, "jobset"),
    (f"{KUEUE}/cmd/kueue", "kueue"),
)
# The folders with the manifests. Trainer's refer to JobSet's by an address on the Internet.
FOLDERS = ((TRAINER, "manifests", "trainer"), (JOBSET, "config", "jobset"), (KUEUE, "config", "kueue"))
REMOTE = ("trainer/overlays/manager/kustomization.yaml", "  - ../../third-party/jobset")
DEPLOYMENTS = (
    ("kubeflow-system", "kubeflow-trainer-controller-manager"),
    ("jobset-system", "jobset-controller-manager"),
    ("kueue-system", "kueue-controller-manager"),
)
MANIFEST, ARCHIVE = "trainer.yaml", "images.tar"
# The programs run as any user but root, which their manifests demand.
USER = ("--change", "USER 65532:65532")
READY = "--timeout=180s"


def key() -> str:
    """Return a hash of the pinned modules and the manifests."""
    texts = [(MODULE / name).read_text() for name in ("go.mod", "go.sum", "kustomization.yaml")]
    return hashlib.sha256(repr((PROGRAMS, USER, texts)).encode()).hexdigest()[:12]


def ensure(podman: Podman, store: Path, kubectl: Path, report: Callable[[str], None]) -> Path:
    """Build the images and the manifest if necessary, and return their folder."""
    folder = store / f"trainer-{key()}"
    with (store / "trainer.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            report(f"Building Kubeflow Trainer and Kueue in {folder} (once, takes ten minutes of CPU time)")
            part = folder.with_suffix(".part")
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            _build(podman, part)
            (part / MANIFEST).write_text(_manifest(part, kubectl))
            part.rename(folder)
    return folder


def install(cluster: Cluster, podman: Podman, nodes: list[str], made: Path) -> None:
    """Import the images on each node, apply the manifest, and wait until all controllers are ready."""
    for node in nodes:
        podman("cp", str(made / ARCHIVE), f"{node}:/root/{ARCHIVE}")
        podman("exec", node, "ctr", "--namespace", "k8s.io", "images", "import", f"/root/{ARCHIVE}")
        podman("exec", node, "rm", f"/root/{ARCHIVE}")
    cluster.kubectl("apply", "--server-side", "--filename", str(made / MANIFEST))
    for namespace, name in DEPLOYMENTS:
        cluster.kubectl("rollout", "status", "--namespace", namespace, f"deployment/{name}", READY)


def _build(podman: Podman, part: Path) -> None:
    names = []
    for package, name in PROGRAMS:
        program = part / name / "manager"
        binaries.go(MODULE, "build", "-ldflags", "-s -w", "-o", str(program), package)
        names.append(f"lab.local/{name}:1")
        images.pack(podman, program, names[-1], "manager", *USER)
        shutil.rmtree(program.parent)
    archive = str(part / ARCHIVE)
    podman("save", "--quiet", "--multi-image-archive", "--format", "docker-archive", "--output", archive, *names)
    podman("rmi", *names)


def _manifest(part: Path, kubectl: Path) -> str:
    """Return the objects of all controllers with the lab's images."""
    for module, folder, name in FOLDERS:
        source = Path(binaries.go(MODULE, "list", "-m", "-f", "{{.Dir}}", module).strip())
        shutil.copytree(source / folder, part / name, copy_function=shutil.copyfile)
    path, remote = part / REMOTE[0], REMOTE[1]
    lines = [line for line in path.read_text().splitlines() if not line.startswith(remote)]
    path.write_text("\n".join([*lines, ""]))
    shutil.copyfile(MODULE / "kustomization.yaml", part / "kustomization.yaml")
    return run(str(kubectl), "kustomize", str(part))
