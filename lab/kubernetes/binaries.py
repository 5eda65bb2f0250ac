"""The programs of Kubernetes, etcd, CoreDNS, kubectl and the MPI Operator, built from one pinned Go module."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from lab.nodes.programs import LabError, run

MODULE = Path(__file__).parent
OWN = ("kube", "coredns", "devices", "pause")
OPERATOR = "github.com/kubeflow/mpi-operator"
UPSTREAM = (f"{OPERATOR}/cmd/mpi-operator", "k8s.io/kubernetes/cmd/kubectl")
OPERATOR_MANIFEST = "deploy/v2beta1/mpi-operator.yaml"
MANIFEST = "mpi-operator.yaml"
# Without these, a program reports v0.0.0, and its feature gates and clients use that version.
STAMPED = ("k8s.io/client-go/pkg/version", "k8s.io/component-base/version")
FLAGS = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false", "CGO_ENABLED": "0"}
VERSION = re.compile(r"^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$", re.MULTILINE)
OPERATOR_VERSION = re.compile(rf"^\t{re.escape(OPERATOR)} v(\S+)", re.MULTILINE)


def key(module: Path = MODULE) -> str:
    """Return a hash of the module, its checksums and the lab's Go code."""
    digest = hashlib.sha256(repr((OWN, UPSTREAM, FLAGS)).encode())
    for path in sorted([module / "go.mod", module / "go.sum", *module.glob("*/*.go")]):
        digest.update(f"{path.relative_to(module)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def version(text: str) -> str:
    """Return the Kubernetes release that a go.mod pins."""
    return _found(VERSION, text)[1]


def operator_version(text: str) -> str:
    """Return the MPI Operator release that a go.mod pins, in the form of its image tags."""
    return _found(OPERATOR_VERSION, text)[1]


def linked(text: str) -> str:
    """Return the linker flags, which set the version in the programs."""
    release, major, minor = _found(VERSION, text).groups()
    values = {"gitVersion": release, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = (f"-X {package}.{name}={value}" for package in STAMPED for name, value in values.items())
    return " ".join(["-s", "-w", *stamps])


def ensure(store: Path, report: Callable[[str], None]) -> Path:
    """Build the programs if necessary, and return the folder with the programs and the operator's manifest."""
    folder = store / f"programs-{key()}"
    store.mkdir(parents=True, exist_ok=True)
    with (store / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            report(f"Building Kubernetes in {folder} (once, takes ten minutes of CPU time and 4 GB of disk)")
            _build(folder)
            for other in store.glob("programs-*"):
                if other != folder:
                    shutil.rmtree(other)
    return folder


def _build(folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    text = (MODULE / "go.mod").read_text()
    own = [f"./{name}" for name in OWN]
    go(MODULE, "build", "-ldflags", linked(text), "-o", f"{part}/", *own, *UPSTREAM)
    source = Path(go(MODULE, "list", "-m", "-f", "{{.Dir}}", OPERATOR).strip())
    (part / MANIFEST).write_text((source / OPERATOR_MANIFEST).read_text())
    part.rename(folder)


def go(module: Path, *arguments: str) -> str:
    """Run Go in the folder of a module, and return its output."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # make setup installs Go there if the machine has none
    program = shutil.which("go", path=path)
    if program is None:
        raise LabError("Kubernetes cannot be built: this machine has no Go. Run make setup-kubernetes.")
    return run(program, "-C", str(module), *arguments, environment={**os.environ, **FLAGS, "PATH": path})


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.search(text)
    if found is None:
        raise LabError(f"{MODULE / 'go.mod'} contains no line that matches {pattern.pattern}.")
    return found
