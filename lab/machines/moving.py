# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A migration of a guest from host to host: by libvirt, and with the guest suspended where it is emulated."""

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
WARM = 5  # percent, when the copy begins
LOOK_SECONDS = 0.5
NO_JOB = ("no job", "No job", "not active", "failed to get domain", "is not running")


@dataclass
class Migration:
    """One move. A live one under emulation can lose the guest's writes and report success: it never is."""

    key: str
    source: Host
    target: Host
    how: Move
    tell: Callable[[int], None]
    stopping: threading.Event
    is_live: bool

    def __post_init__(self) -> None:
        self.at = self.source

    def run(self) -> float:
        """Move the guest; the seconds for which it stood. Where that fails, it goes on at its source."""
        for step in range(STEPS):
            self.tell(step * WARM // STEPS)
            self.rest(self.how.precopy_seconds / STEPS)
        if self.is_live and not self.how.fails:
            self._copy("--live")
        began = time.monotonic()
        self.at.virsh("suspend", self.key)
        try:
            if not self.is_live and not self.how.fails:
                self._copy()
            self.rest(max(0.0, self.how.stun_seconds - (time.monotonic() - began)))
        finally:
            resume(self.at, self.key)
        if self.how.fails:
            raise LabError(self.how.fails)
        return time.monotonic() - began

    def _copy(self, *options: str) -> None:
        """Carry the guest's state over, telling how far it is; a cancelled task aborts that."""
        there = self.target.address
        limit = [f"--bandwidth={self.how.mib_per_second}"] if self.how.mib_per_second else []
        # Both hosts see one folder of disks, through one cache of one kernel.
        words = ["migrate", "--unsafe", *options, *limit, self.key, f"qemu+tcp://{there}/system", f"tcp://{there}"]
        with subprocess.Popen(
            self.source.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            try:
                self._follow(process)
            except (Cancelled, LabError):
                self.source.virsh("domjobabort", self.key, refused=NO_JOB)
                # It was too late where the guest had just left.
                self.at = self.source if process.wait() else self.target
                raise
            said = process.stdout.read().decode(errors="replace").strip() if process.stdout else ""
        if process.returncode:
            names = f"{self.key} could not be moved from {self.source.name} to {self.target.name}"
            raise LabError(f"{names}: {said or process.returncode}. It stays where it was.")
        self.at = self.target

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        copied = WARM
        while process.poll() is None:
            copied = max(copied, self._copied() or 0)
            self.tell(copied)
            self.rest(LOOK_SECONDS)

    def _copied(self) -> int | None:
        """How much of the guest has been copied; it leaves the source at the end, before the program does."""
        try:
            return jobs.percent(jobs.read(self.source.virsh("domjobinfo", self.key)))
        except LabError:
            return None

    def rest(self, seconds: float) -> None:
        """Let time pass, unless the hypervisor ends."""
        if self.stopping.wait(seconds):
            raise LabError("The hypervisor ends.")


def resume(host: Host, key: str) -> None:
    """Let a guest go on that was suspended; one that is not there any more is lost by the lab."""
    try:
        host.virsh("resume", key)
        state = host.virsh("domstate", key).strip()
    except LabError as error:
        raise LabFailure(f"The lab failed, not the job: {key} did not go on at {host.name}: {error}") from error
    if state != "running":
        raise LabFailure(f"The lab failed, not the job: {key} is {state} at {host.name}.")
