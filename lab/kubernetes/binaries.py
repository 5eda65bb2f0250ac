# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The programs of a Kubernetes, built once from one pinned module: its own, etcd, CoreDNS, kubectl, MPI Operator."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lab.nodes.programs import LabError

MODULE = Path(__file__).parent
OURS = ("kube", "coredns", "devices", "pause")
OPERATOR = "github.com/kubeflow/mpi-operator"
THEIRS = (f"{OPERATOR}/cmd/mpi-operator", "k8s.io/kubernetes/cmd/kubectl")
OPERATORS_MANIFEST = "deploy/v2beta1/mpi-operator.yaml"
MANIFEST = "mpi-operator.yaml"
# Without these a program takes itself for v0.0.0, and so do its feature gates and those who ask it.
STAMPED = ("k8s.io/client-go/pkg/version", "k8s.io/component-base/version")
FLAGS = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false", "CGO_ENABLED": "0"}
VERSION = re.compile(r"^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$", re.MULTILINE)
OPERATORS_VERSION = re.compile(rf"^\t{re.escape(OPERATOR)} v(\S+)", re.MULTILINE)


def key(module: Path = MODULE) -> str:
    """Another module, another sum or another line of ours is another build."""
    digest = hashlib.sha256(repr((OURS, THEIRS, FLAGS)).encode())
    for path in sorted([module / "go.mod", module / "go.sum", *module.glob("*/*.go")]):
        digest.update(f"{path.relative_to(module)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def version(text: str) -> str:
    """The release of Kubernetes that a go.mod pins."""
    return _found(VERSION, text)[1]


def operators_version(text: str) -> str:
    """The release of the MPI Operator that a go.mod pins, as its images are tagged."""
    return _found(OPERATORS_VERSION, text)[1]


def linked(text: str) -> str:
    """What the linker writes into the programs."""
    release, major, minor = _found(VERSION, text).groups()
    told = {"gitVersion": release, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = (f"-X {package}.{name}={value}" for package in STAMPED for name, value in told.items())
    return " ".join(["-s", "-w", *stamps])


def ensure(store: Path, tell: Callable[[str], None]) -> Path:
    """Build the programs if they are not there; the folder that holds them and the operator's manifest."""
    folder = store / f"programs-{key()}"
    store.mkdir(parents=True, exist_ok=True)
    with (store / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            tell(f"Building Kubernetes in {folder}, once; this takes ten minutes of one processor, and 4 GB of disk")
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
    own = [f"./{name}" for name in OURS]
    _go("build", "-ldflags", linked(text), "-o", f"{part}/", *own, *THEIRS)
    source = Path(_go("list", "-m", "-f", "{{.Dir}}", OPERATOR).strip())
    (part / MANIFEST).write_text((source / OPERATORS_MANIFEST).read_text())
    part.rename(folder)


def _go(*arguments: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # where make setup puts Go if the machine has none
    go = shutil.which("go", path=path)
    if go is None:
        raise LabError("Kubernetes cannot be built: there is no Go on this machine. Run make setup-kubernetes.")
    environment = {**os.environ, **FLAGS, "PATH": path}
    done = subprocess.run([go, *arguments], cwd=MODULE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"go {arguments[0]} in {MODULE} failed ({done.returncode}): {done.stderr.strip()[-800:]}")
    return done.stdout


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.search(text)
    if found is None:
        raise LabError(f"{MODULE / 'go.mod'} pins nothing that looks like {pattern.pattern}.")
    return found
