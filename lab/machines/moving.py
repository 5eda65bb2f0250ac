"""Migrates a guest between hosts with libvirt; an emulated guest is suspended during the migration."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from lab.hypervisor.backend import Cancelled, Move
from lab.machines import jobs
from lab.machines.health import LabFailure
from lab.machines.host import Host
from lab.nodes.programs import LabError

STEPS = 10
WARM = 5  # percent, when the copy starts
LOOK_SECONDS = 0.5
NO_JOB = ("no job", "No job", "not active", "failed to get domain", "is not running")


@dataclass
class Migration:
    """One move. An emulated guest never migrates live: it could lose writes although libvirt reports success."""

    key: str
    source: Host
    target: Host
    how: Move
    report: Callable[[int], None]
    stopping: threading.Event
    is_live: bool

    def __post_init__(self) -> None:
        self.at = self.source

    def run(self) -> float:
        """Move the guest and return the seconds for which it stood; after a failure it continues at its source."""
        for step in range(STEPS):
            self.report(step * WARM // STEPS)
            self.rest(self.how.precopy_seconds / STEPS)
        if self.is_live and not self.how.fails:
            self._copy("--live")
        started = time.monotonic()
        self.at.virsh("suspend", self.key)
        try:
            if not self.is_live and not self.how.fails:
                self._copy()
            self.rest(max(0.0, self.how.stun_seconds - (time.monotonic() - started)))
        finally:
            resume(self.at, self.key)
        if self.how.fails:
            raise LabError(self.how.fails)
        return time.monotonic() - started

    def _copy(self, *options: str) -> None:
        """Copy the guest's state and report the progress; abort if the task is cancelled."""
        there = self.target.address
        limit = [f"--bandwidth={self.how.mib_per_second}"] if self.how.mib_per_second else []
        # Both hosts use the same folder of disks through the page cache of the same kernel.
        words = ["migrate", "--unsafe", *options, *limit, self.key, f"qemu+tcp://{there}/system", f"tcp://{there}"]
        with subprocess.Popen(
            self.source.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            try:
                self._follow(process)
            except (Cancelled, LabError):
                self.source.virsh("domjobabort", self.key, refused=NO_JOB)
                # The abort is too late if the guest has just left its source.
                self.at = self.source if process.wait() else self.target
                raise
            message = process.stdout.read().decode(errors="replace").strip() if process.stdout else ""
        if process.returncode:
            names = f"{self.key} could not be moved from {self.source.name} to {self.target.name}"
            raise LabError(f"{names}: {message or process.returncode}. It stays on its source host.")
        self.at = self.target

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        copied = WARM
        while process.poll() is None:
            copied = max(copied, self._copied() or 0)
            self.report(copied)
            self.rest(LOOK_SECONDS)

    def _copied(self) -> int | None:
        """Return how much of the guest has been copied; at the end, it leaves the source before virsh ends."""
        try:
            return jobs.percent(jobs.read(self.source.virsh("domjobinfo", self.key)))
        except LabError:
            return None

    def rest(self, seconds: float) -> None:
        """Wait for some time, unless the hypervisor ends."""
        if self.stopping.wait(seconds):
            raise LabError("The hypervisor is shutting down.")


def resume(host: Host, key: str) -> None:
    """Resume a suspended guest; if it no longer exists, that is a failure of the lab."""
    try:
        host.virsh("resume", key)
        state = host.virsh("domstate", key).strip()
    except LabError as error:
        raise LabFailure(f"The lab failed, not the job: {key} did not resume on {host.name}: {error}") from error
    if state != "running":
        raise LabFailure(f"The lab failed, not the job: {key} is {state} on {host.name}.")
