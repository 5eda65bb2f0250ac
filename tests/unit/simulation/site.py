# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A data centre in memory and in virtual time: hosts, workers, a job that makes steps, a lock, and other people.

It is the truth that programs are judged by. A write that no program may ever send raises Violation.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CLUSTER = "gpu"
STEP_SECONDS = 8.0
LAUNCHER = {"host": "w1", "pid": 7, "start": 1, "boot_id": "b"}


class Violation(AssertionError):
    """A program did what no program may do."""


@dataclass(frozen=True)
class Profile:
    """A requested profile: its number, the boots that it needs, and whether hosts must leave service for it."""

    level: int = 0
    boots: int = 0
    leaves: bool = True

    @property
    def option(self) -> dict[str, Any]:
        """Return the profile as an option."""
        return {"level": self.level, "boots": self.boots, "leaves": self.leaves}


@dataclass
class Host:
    """A host: the profile that it has, the boots until that is in force, and who took it out of service."""

    level: int = 0
    boots_left: int = 0
    is_applied: bool = True
    is_out: bool = False
    by: str = ""
    is_up: bool = True
    is_lost: bool = False
    ending_boot: str = ""
    boots: int = 0

    @property
    def responds(self) -> bool:
        return self.is_up and not self.is_lost

    @property
    def boot_time(self) -> str:
        return f"boot {self.boots}"

    def has(self, profile: Profile) -> bool:
        """Return whether a profile is in force."""
        return self.level == profile.level and not self.boots_left

    def differs(self, profile: Profile) -> bool:
        """Return whether a write is left to do."""
        return self.level != profile.level or not self.is_applied

    def boots_for(self, profile: Profile) -> int:
        return self.boots_left if self.level == profile.level else profile.boots

    def needs(self, profile: Profile) -> list[str]:
        if self.boots_for(profile):
            return ["reboot"]
        return ["maintenance"] if self.differs(profile) and profile.leaves else []

    def apply(self, profile: Profile) -> None:
        if self.level != profile.level:
            self.level, self.boots_left = profile.level, profile.boots
        self.is_applied = True

    def boot(self) -> None:
        self.boots, self.is_up, self.boots_left = self.boots + 1, True, max(0, self.boots_left - 1)
        # A profile with several boots has settings for each of them.
        self.is_applied = not self.boots_left


@dataclass
class Job:
    """A job of which each rank makes each step together with the others, as an allreduce makes them."""

    ranks: dict[int, str]
    started: float
    state: str = "running"
    ended: float | None = None
    step: int = 0
    next_step: float = 0.0
    step_times: list[float] = field(default_factory=list)
    # The times at which another user set the clock of a worker's guest, and by how many seconds.
    clock_sets: list[tuple[str, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next_step = self.started + STEP_SECONDS

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    @property
    def ranks_by_worker(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for rank, worker in self.ranks.items():
            found.setdefault(worker, []).append(rank)
        return found

    def make_steps(self, until: float) -> None:
        while self.is_running and self.next_step <= until:
            self.step_times.append(self.next_step)
            self.step, self.next_step = self.step + 1, self.next_step + STEP_SECONDS

    def stand_still(self, since: float, seconds: float) -> None:
        """Make no step in a span of time; the step at hand is made afterwards."""
        self.next_step = max(self.next_step, since + seconds + STEP_SECONDS / 2)

    def end(self, state: str, at: float) -> None:
        if self.is_running:
            self.state, self.ended = state, at

    def clock_of(self, worker: str, at: float) -> float:
        """Return what the clock of a worker's guest shows at a time."""
        return at + sum(seconds for name, since, seconds in self.clock_sets if name == worker and since <= at)

    def records(self, since: float) -> Iterator[dict[str, Any]]:
        """Yield the record of each step of each rank after a time, as the watch stamps them."""
        for number, at in enumerate(self.step_times):
            if at <= since:
                continue
            for rank, worker in self.ranks.items():
                yield {
                    "rank": rank,
                    "size": len(self.ranks),
                    "host": worker,
                    "pid": 100 + rank,
                    "start": 7,
                    "boot_id": f"boot of {worker}",
                    "job": f"job {self.started}",
                    "generation": 0,
                    "t": self.clock_of(worker, at),
                    "seen": at + 0.001,
                    "step": number,
                    "phase": "train",
                    "loss": 1.0,
                    "images_per_sec": 100.0,
                }

    def longest_silence(self, since: float, until: float) -> float:
        """Return the longest time without a step between two times."""
        times = [since, *(at for at in self.step_times if since < at < until), min(until, self.ended or until)]
        return max(after - before for before, after in itertools.pairwise(times))


@dataclass
class Site:
    """The truth about the data centre. ``requested`` is the profile that was requested last."""

    hosts: dict[str, Host]
    workers: dict[str, str]
    clock: float = 1000.0
    # How far the clock of the controller was set; the clock of a running test does not follow it.
    clock_set: float = 0.0
    requested: Profile = field(default_factory=Profile)
    job: Job | None = None
    alarms: set[str] = field(default_factory=set)
    resync: int = 0
    # The run that holds the lock, and the time at which it expires.
    holder: str = ""
    expires: float = 0.0
    is_overridden: bool = False
    is_watched: bool = False
    # The hosts before the last write, which a server that is late still shows.
    earlier: dict[str, Host] = field(default_factory=dict)
    moves: list[dict[str, Any]] = field(default_factory=list)
    stuns: list[float] = field(default_factory=list)
    # The hosts for which a run has read the stop rules since they last left service, and the stops that it read.
    rules_read: dict[str, list[str]] = field(default_factory=dict)
    # The hosts that were out of service at the last reading of the stop rules.
    seen_out: set[str] = field(default_factory=set)
    most: int = 1
    writes: int = 0

    def pass_time(self, seconds: float) -> None:
        self.clock += seconds
        if self.job:
            self.job.make_steps(self.clock)

    @property
    def ranks_on(self) -> dict[str, list[int]]:
        """Return the ranks of the running job by host."""
        found: dict[str, list[int]] = {}
        for rank, worker in (self.job.ranks if self.job and self.job.is_running else {}).items():
            found.setdefault(self.workers[worker], []).append(rank)
        return found

    def came_back(self, worker: str) -> bool:
        """Return whether another user moved a worker while its DRS override kept it from moving by itself."""
        moves = [move for move in self.moves if move["worker"] == worker]
        return self.is_overridden and bool(moves) and moves[-1]["by"] != "us"

    def out(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.is_out or host.by or not host.responds]

    def serving(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.responds and not host.is_out]

    def free_host(self, worker: str) -> str:
        """Return a host with room for a worker; empty if there is none."""
        taken = {place for name, place in self.workers.items() if name != worker}
        return next((name for name in self.serving() if name not in taken and name != self.workers[worker]), "")

    def write(self, run: str, what: str) -> None:
        """Count a write; one without the lock is a violation."""
        if self.holder != run:
            raise Violation(f"{what} without the lock, which {self.holder or 'nobody'} holds")
        self.writes += 1
        self.earlier = copy.deepcopy(self.hosts)

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Show the hosts as they were before the last write."""
        present, self.hosts = self.hosts, self.earlier or self.hosts
        try:
            yield
        finally:
            self.hosts = present

    def own(self, name: str, what: str) -> Host:
        """Return a host that a program changes; one that another user took out is a violation."""
        host = self.hosts[name]
        if host.by not in ("", "us"):
            raise Violation(f"{what} {name}, which {host.by} took out of service")
        return host

    def leave(self, name: str, run: str) -> None:
        """Put a host into maintenance mode; its workers move away as DRS moves them."""
        host = self.hosts[name]
        if host.is_out:
            # Another user was faster by an instant; the server accepts the call, and changes nothing.
            return
        self.write(run, f"maintenance mode of {name}")
        if name in self.ranks_on:
            raise Violation(f"{name} leaves service with ranks {self.ranks_on[name]}")
        if self.rules_read.pop(name, ["not read"]):
            raise Violation(f"{name} leaves service against a stop rule, or without a reading of the rules")
        # No program can see a host that another user takes, or that is lost, in the instant after its reading.
        known = {other for other in self.out() if other in self.seen_out or self.hosts[other].by == "us"}
        others = sorted(known - {name})
        if len(others) + 1 > self.most:
            raise Violation(f"{name} leaves service while {', '.join(others)} are out, and {self.most} may be")
        host.is_out, host.by = True, "us"

    def boot(self, name: str, run: str) -> None:
        """Begin a reboot."""
        host = self.own(name, "reboots")
        self.write(run, f"reboot of {name}")
        if not (host.is_out and host.by == "us"):
            raise Violation(f"{name} reboots in service")
        host.ending_boot, host.is_up = host.boot_time, False

    def apply(self, name: str, profile: Profile, run: str) -> None:
        """Apply a profile."""
        host = self.own(name, "changes")
        self.write(run, f"change of {name}")
        if host.needs(profile) and not host.is_out:
            raise Violation(f"{name} is changed in service")
        host.apply(profile)

    def move(self, worker: str, target: str, by: str, run: str = "") -> dict[str, Any]:
        """Begin a move; the job stands still for the next stun at its end."""
        if by == "us":
            self.write(run, f"move of {worker}")
        self.pass_time(1.0)
        move = {
            "worker": worker,
            "source": self.workers[worker],
            "target": target,
            "started": self.clock,
            "completed": None,
            "ok": False,
            "said": "",
            "chain": len(self.moves) + 1,
            "events": [],
            "by": by,
            "vsphere": {"hot_migration": True, "power_cycled": False},
        }
        self.moves.append(move)
        return move

    def arrive(self, move: dict[str, Any]) -> None:
        """End a move."""
        stun, worker = self.stuns.pop(0) if self.stuns else 1.0, move["worker"]
        self.pass_time(10.0)
        if self.job and worker in self.job.ranks.values():
            self.job.stand_still(self.clock, stun)
        self.pass_time(stun)
        move.update(completed=self.clock, ok=True)
        self.workers[worker] = move["target"]

    def lose(self, name: str) -> None:
        """Lose a host with all that runs on it."""
        if name in self.ranks_on and self.job:
            self.job.end("died", self.clock)
        self.hosts[name].is_lost = True


class SiteTime:
    """The clocks of a controller: that which users set, and that which only time moves."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def time(self) -> float:
        return self._site.clock + self._site.clock_set

    def monotonic(self) -> float:
        return self._site.clock
