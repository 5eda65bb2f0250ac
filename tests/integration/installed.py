"""The tarball as a user gets it, built and installed once for all processes of a run of tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lab.simulator import BYTECODE, ROOT
from tests.integration import callers

BIN = Path(sys.executable).parent
PLACES = {"ANSIBLE_COLLECTIONS_PATH": "collections", "ANSIBLE_HOME": "home", "ANSIBLE_REMOTE_TEMP": "remote"}


def run(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of the checkout, except for what Python compiled before."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "VMWARE_"))}
    environment = {
        **clean,
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": str(BYTECODE),
        **variables,
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def tarball() -> Path:
    """Return the collection, built from this checkout as by make build."""

    def build(folder: Path) -> None:
        # Its tables need the types of the newest pyVmomi, whichever pyVmomi the tests of the tarball run with.
        python = str(ROOT / ".venv" / "bin" / "python")
        built = run(folder, python, "-m", "tools.build", str(folder), PYTHONPATH=str(ROOT))
        assert built.returncode == 0, built.stdout

    (only,) = once("built", build).glob("dml-vsphere-*.tar.gz")
    return only


def elsewhere() -> Path:
    """Return a folder into which only the tarball was installed."""
    package = tarball()

    def install(folder: Path) -> None:
        collections = str(folder / "collections")
        done = run(folder, "ansible-galaxy", "collection", "install", "--offline", "-p", collections, str(package))
        assert done.returncode == 0, done.stdout
        assert "dml.vsphere:" in done.stdout and "was installed successfully" in done.stdout

    return once("elsewhere", install)


def once(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of this run of tests, which the first process that asks for it fills."""
    folder = Path(os.environ[callers.FOLDER]) / name
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            make(folder)
    return folder
