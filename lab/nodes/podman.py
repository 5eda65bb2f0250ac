"""Podman with all its state in one folder, separate from this machine's podman and services."""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from pathlib import Path
from typing import Any

from lab.nodes.programs import LabError, run

# Without a bind mount of the store onto itself, the folder can be deleted when no node runs. runc is used because crun
# fails if both cgroup v1 and v2 are mounted. File locks leave nothing in /dev/shm.
CONTAINERS = """\
[containers]
default_ulimits = {ulimits}
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "{store}/tmp"
static_dir = "{store}/libpod"
volume_path = "{store}/volumes"
image_copy_tmp_dir = "{store}/tmp"
[network]
network_config_dir = "{store}/networks"
network_backend = "cni"
"""
STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{store}/storage"
runroot = "{store}/run"
[storage.options.overlay]
skip_mount_home = "true"
"""
MOST = 1048576
ALIVE = ("running", "stopping", "paused")
END_SECONDS, LOOK_SECONDS = 60, 0.05


class Podman:
    """The podman command, bound to a store."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(store / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(store / "storage.conf"),
        }

    def prepare(self) -> None:
        """Write the configuration, and remove the runtime state from before this machine's last boot."""
        self.store.mkdir(parents=True, exist_ok=True)
        (self.store / "containers.conf").write_text(CONTAINERS.format(store=self.store, ulimits=json.dumps(_ulimits())))
        (self.store / "storage.conf").write_text(STORAGE.format(store=self.store))
        boot_id, recorded = Path("/proc/sys/kernel/random/boot_id").read_text(), self.store / "boot_id"
        if recorded.exists() and recorded.read_text() != boot_id:
            shutil.rmtree(self.store / "run", ignore_errors=True)
            shutil.rmtree(self.store / "tmp", ignore_errors=True)
        recorded.write_text(boot_id)

    def __call__(self, *arguments: str, refused: tuple[str, ...] = ()) -> str:
        return run("podman", *arguments, environment=self.environment, refused=refused).strip()

    def inspect(self, container: str) -> dict[str, Any]:
        """Return podman's description of a container."""
        return dict(json.loads(self("container", "inspect", container))[0])

    def containers(self, label: str) -> list[str]:
        """Return the names of all containers with a label, running or not."""
        if not (self.store / "storage.conf").exists():
            return []
        return self("ps", "--all", "--filter", f"label={label}", "--format", "{{.Names}}").split()

    def await_end(self, container: str, seconds: float) -> None:
        """Return when a killed container has ended: ``podman wait`` waits 20 s more for an exit code."""
        deadline = time.monotonic() + seconds
        while (status := self.inspect(container)["State"]["Status"]) in ALIVE:
            if time.monotonic() > deadline:
                raise LabError(f"{container} is {status} {seconds:.0f} s after it was asked to end.")
            time.sleep(LOOK_SECONDS)

    def pid(self, container: str) -> int:
        """Return the first process of a container."""
        pid = int(self.inspect(container)["State"]["Pid"])
        if pid == 0:
            raise LabError(f"{container} has no process: it is not running.")
        return pid


def _ulimits() -> list[str]:
    """Return the limits of this process: podman's defaults exceed what a restricted root may set."""
    limits = []
    # podman lowers its limit of processes to pid_max
    processes = int(Path("/proc/sys/kernel/pid_max").read_text())
    for name, number, bound in (("nofile", resource.RLIMIT_NOFILE, MOST), ("nproc", resource.RLIMIT_NPROC, processes)):
        hard = resource.getrlimit(number)[1]
        most = bound if hard == resource.RLIM_INFINITY else min(hard, bound)
        limits.append(f"{name}={most}:{most}")
    memlock = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return [*limits, f"memlock={memlock}:{memlock}"]
