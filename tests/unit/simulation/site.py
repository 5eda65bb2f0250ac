"""A data centre in memory and in virtual time: hosts, workers, a job that makes steps, a lock, and other people.

It is the truth that programs are judged by. A write that no program may ever send raises Violation.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .host import Host, Profile
from .job import Job

CLUSTER = "gpu"
# Another user, and DRS, move a virtual machine; HA restarts one.
MOVE_SECONDS, RESTART_SECONDS = 10.0, 60.0
# vLCM installs an image and boots the host.
REMEDIATION_SECONDS = 600.0
# An acknowledgement of a window counts for a day; a run takes less than the rest.
ACK_SECONDS = 90_000.0
# A host that a window started in time leaves service within this time.
LATE_SECONDS = 1800.0


class Violation(AssertionError):
    """A program did what no program may do."""


@dataclass
class Site:
    """The truth about the data centre. ``requested`` is the profile that was requested last."""

    hosts: dict[str, Host]
    workers: dict[str, str]
    # The virtual machine of each worker: one that is built again under a name is another machine.
    machines: dict[str, str] = field(default_factory=dict)
    clock: float = 1000.0
    # How far the clock of the controller was set; the clock of a running test does not follow it.
    clock_set: float = 0.0
    requested: Profile = field(default_factory=Profile)
    # The image of the cluster, and the requested one; 0: the users leave it as it is.
    image: int = 0
    requested_image: int = 0
    job: Job | None = None
    # The job of another user, the time at which the owner of the job agreed to a window, and whether that is required.
    beside: Job | None = None
    acknowledged: float = 0.0
    requires_ack: bool = False
    # Whether workers of other jobs may move.
    accepts_others: bool = False
    # The request of another user to the window, and when it was made.
    requested_at: float = math.inf
    request: str = ""
    # The progress in the record of the lock; the request that no run has answered yet, also if its record was lost.
    note: str = ""
    pending: str = ""
    # The hosts that the present run chose; the run directory of the job of the present window.
    chosen: tuple[str, ...] = ()
    around: str = ""
    # The hosts with a red alarm, and since when.
    alarms: dict[str, float] = field(default_factory=dict)
    resync: int = 0
    # The run that holds the lock, and the time at which it expires.
    holder: str = ""
    expires: float = 0.0
    # The workers that a test or a window keeps from being moved by DRS.
    overridden: set[str] = field(default_factory=set)
    is_watched: bool = False
    # Whether all jobs are in Slurm; its reservations.
    has_slurm: bool = False
    reserved: set[str] = field(default_factory=set)
    # The workers that are powered off; the run directories of the attempt that a window stopped, and of all attempts.
    off: set[str] = field(default_factory=set)
    stopped: str = ""
    hangs: int = 0  # guests that hang when they are shut down
    # The run with which the owner of the job goes on elsewhere.
    resumed_by_owner: str = ""
    attempts: dict[str, Job] = field(default_factory=dict)
    jobs_so_far: dict[str, Job] = field(default_factory=dict)  # also those that have ended
    # The hosts before the last write, which a server that is late still shows.
    earlier: dict[str, Host] = field(default_factory=dict)
    moves: list[dict[str, Any]] = field(default_factory=list)
    # The time of the last boot of a worker that HA restarted, and the time at which HA acts next.
    boots: dict[str, float] = field(default_factory=dict)
    restarts_at: float = math.inf
    # The seconds between two moves with which DRS balances the cluster; 0: it makes none.
    drs_seconds: float = 0.0
    drs_at: float = 0.0
    stuns: list[float] = field(default_factory=list)
    # The hosts for which a run has read the stop rules since they last left service, and the stops that it read.
    rules_read: dict[str, list[str]] = field(default_factory=dict)
    # The stop rules that the users accept.
    accepted: frozenset[str] = frozenset()
    # The hosts that were out of service at the last reading of the stop rules.
    seen_out: set[str] = field(default_factory=set)
    most: int = 1
    writes: int = 0
    # The present run: its start, the last return of a host, the end of its window, its last call; its time zone.
    run_began: float = 0.0
    returned_at: float = 0.0
    ends_at: float = math.inf
    is_window: bool = False
    last_call: tuple[str, str] = ("", "")
    zone: str = ""

    def __post_init__(self) -> None:
        self.machines = {name: f"{name}, built at first" for name in self.workers}

    def pass_time(self, seconds: float) -> None:
        self.clock += seconds
        if self.job:
            self.job.make_steps(self.clock)

    def jobs(self) -> dict[str, Job]:
        """Return the running jobs by their run directories."""
        return {one.run_dir: one for one in (self.job, self.beside) if one and one.is_running}

    def is_beside(self) -> bool:
        """Return whether the job of another user runs."""
        return self.beside is not None and self.beside.is_running

    @property
    def ranks_on(self) -> dict[str, list[int]]:
        """Return the ranks of the running job by host."""
        found: dict[str, list[int]] = {}
        for rank, worker in (self.job.ranks if self.job and self.job.is_running else {}).items():
            found.setdefault(self.workers[worker], []).append(rank)
        return found

    def came_back(self, worker: str) -> bool:
        """Return whether others moved a worker while its DRS override kept it from moving by itself."""
        moves = [move for move in self.moves if move["worker"] == worker and move["ok"]]
        is_others = worker in self.boots or (bool(moves) and moves[-1]["by"] != "us")
        return worker in self.overridden and is_others

    def out(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.is_out or host.by or not host.responds]

    def serving(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.responds and not (host.is_out or host.is_entering)]

    def remediated(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.remediated_at]

    def on(self, host: str) -> list[str]:
        """Return the workers on a host."""
        return [worker for worker, place in self.workers.items() if place == host and worker not in self.off]

    def moving(self, worker: str) -> dict[str, Any] | None:
        """Return the move of a worker that is in progress."""
        return next((one for one in self.moves if one["worker"] == worker and one["completed"] is None), None)

    def free_host(self, worker: str) -> str:
        """Return a host with room for a worker; empty if there is none."""
        return next((name for name in self.serving() if not self.on(name) and name != self.workers[worker]), "")

    def write(self, run: str, what: str) -> None:
        """Count a write; one without the lock is a violation."""
        if self.holder != run:
            raise Violation(f"{what} without the lock, which {self.holder or 'nobody'} holds")
        self.writes += 1
        self.earlier = copy.deepcopy(self.hosts)

    def must_be_permitted(self, what: str, worker: str = "") -> None:
        """Refuse what a window begins although others prevented it before its run began."""
        if not self.is_window:
            return
        is_accepted = self.accepts_others and what.startswith("move of ")
        for place, job in () if is_accepted else self.jobs().items():
            if place != self.around and worker in job.ranks.values() and job.started < self.run_began:
                raise Violation(f"{what}, with a rank of the job in {place}")
        if self.requires_ack and self.job and self.job.is_running and self.run_began - self.acknowledged > ACK_SECONDS:
            raise Violation(f"{what}, and the owner of the job agreed at {self.acknowledged:.0f}")
        if self.pending and self.requested_at <= self.run_began:
            raise Violation(f"{what}, although {self.pending} was requested at {self.requested_at:.0f}")

    def must_be_in_time(self, what: str) -> None:
        """Refuse what a window starts after its end."""
        late = self.clock - self.ends_at if self.is_window else 0.0
        if late > LATE_SECONDS or (late > 0 and self.run_began > self.ends_at):
            raise Violation(f"{what}, {late:.0f} s after the end of the window")

    def must_be_calm(self, what: str) -> None:
        """Refuse what a window starts under a red alarm that was there when its run began.

        The alarm of a host that leaves next stops nothing: its change may be the remedy.
        """
        shown = self.hosts, self.earlier or self.hosts
        excused = {name for name, rules in self.rules_read.items() if not rules}
        known = [
            name
            for name, at in self.alarms.items()
            if self.is_window
            and at <= self.run_began
            and "red_alarm" not in self.accepted
            and not any(hosts[name].by == "us" for hosts in shown)
            if name not in excused
        ]
        if known:
            raise Violation(f"{what}, under a red alarm on {known[0]} that was there when the run began")

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
        if (host := self.hosts[name]).by not in ("", "us"):
            raise Violation(f"{what} {name}, which {host.by} took out of service")
        if host.remediated_at:
            raise Violation(f"{what} {name}, which vLCM remediates")
        return host

    def leave(self, name: str, run: str) -> None:
        """Begin to put a host into maintenance mode."""
        host = self.hosts[name]
        if host.is_out:
            # Another user was faster by an instant; the server accepts the call, and changes nothing.
            return
        self.write(run, f"maintenance mode of {name}")
        self.must_be_permitted(f"maintenance mode of {name}")
        late = [] if self.is_window else [job for job in self.jobs().values() if job.started < self.returned_at]
        if any({*self.on(name)} & {*job.ranks.values()} for job in late):
            raise Violation(f"{name} leaves service with a rank of a job that began before the last host returned")
        if self.is_window and self.has_slurm and not self.reserved:
            raise Violation(f"{name} leaves service, and Slurm may start a job on its workers")
        if self.chosen and name not in self.chosen:
            raise Violation(f"{name} leaves service, and only {', '.join(self.chosen)} may")
        self.must_be_in_time(f"maintenance mode of {name}")
        if name in self.ranks_on and not any(map(self.came_back, self.on(name))):
            raise Violation(f"{name} leaves service with ranks {self.ranks_on[name]}")
        if self.rules_read.pop(name, ["not read"]):
            raise Violation(f"{name} leaves service against a stop rule, or without a reading of the rules")
        # No program can see a host that another user takes, or that is lost, in the instant after its reading.
        known = {other for other in self.out() if other in self.seen_out or self.hosts[other].by == "us"}
        others = sorted(known - {name})
        if len(others) + 1 > self.most:
            raise Violation(f"{name} leaves service while {', '.join(others)} are out, and {self.most} may be")
        host.is_entering, host.by = True, "us"

    def enter(self, name: str) -> bool:
        """Let a host enter maintenance mode, if it is empty; return whether it did."""
        host = self.hosts[name]
        host.is_out, host.is_entering = not self.on(name) and host.responds, False
        return host.is_out

    def evacuate(self, worker: str) -> bool:
        """Move a worker away from a host that enters maintenance mode, as DRS does; return whether it could."""
        target = self.free_host(worker)
        if worker in self.overridden or not target or self.moving(worker):
            return False
        self.arrive(self.move(worker, target, "drs"))
        return True

    def act_alone(self) -> None:
        """Restart the workers of lost hosts, as HA does, and balance the cluster, as DRS does, if it is time."""
        if self.clock >= self.restarts_at:
            self.restart()
        for host in self.hosts.values():
            if host.remediated_at and self.clock >= host.remediated_at:
                self.end_remediation(host)
        if self.drs_seconds and self.clock >= self.drs_at:
            self.drs_at = self.clock + self.drs_seconds
            self.balance()

    def go_on(self) -> None:
        """End what the hosts do without a controller: boots, and the way into maintenance mode."""
        for name, host in self.hosts.items():
            if not host.is_up and not host.is_lost:
                host.boot()
            if host.is_entering:
                for worker in self.on(name):
                    self.evacuate(worker)
                self.enter(name)

    def restart(self) -> None:
        self.restarts_at = math.inf
        for worker, place in sorted(self.workers.items()):
            target = self.free_host(worker)
            if self.hosts[place].is_lost and target and worker not in self.off:
                self.workers[worker], self.boots[worker] = target, self.clock

    def balance(self) -> None:
        """Move one worker that DRS may move."""
        kept = self.overridden | self.off
        free = [one for one in sorted(self.workers) if one not in kept and not self.moving(one)]
        moved = [one for one in free if self.hosts[self.workers[one]].responds and self.free_host(one)]
        if moved:
            worker = moved[len(self.moves) % len(moved)]
            self.arrive(self.move(worker, self.free_host(worker), "drs"))

    def remediate(self, name: str, run: str) -> None:
        """Let vLCM apply the image of the cluster to a host; that goes on without its controller."""
        host = self.own(name, "applies the image to")
        self.write(run, f"remediation of {name}")
        if not (host.is_out and host.by == "us"):
            raise Violation(f"{name} is remediated in service")
        host.remediated_at = self.clock + REMEDIATION_SECONDS

    def end_remediation(self, host: Host) -> None:
        """End a remediation, after which vLCM returns a host that it emptied for another user."""
        host.remediated_at = 0.0
        if host.responds:
            host.image = self.image
            host.boot()
        if host.by == "bob":
            host.is_out, host.by = False, ""

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
            self.must_be_permitted(f"move of {worker}", worker)
            self.must_be_in_time(f"move of {worker}")
            self.must_be_calm(f"move of {worker}")
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
        """End a move; one from or to a host that was lost failed already."""
        if move["completed"] is not None:
            return
        stun, worker = self.stuns.pop(0) if self.stuns else 1.0, move["worker"]
        self.pass_time(MOVE_SECONDS)
        if self.job and worker in self.job.ranks.values():
            self.job.stand_still(self.clock, stun)
        self.pass_time(stun)
        move.update(completed=self.clock, ok=True)
        self.workers[worker] = move["target"]

    def delete(self, worker: str) -> None:
        """Delete a virtual machine, with its override; a move of it ends before."""
        move = self.moving(worker)
        if move:
            self.arrive(move)
        self.overridden.discard(worker)
        del self.workers[worker], self.machines[worker]

    def build(self, worker: str, place: str) -> None:
        """Build a virtual machine, which is another one than any before."""
        self.workers[worker], self.machines[worker] = place, f"{worker}, built at {self.clock}"

    def lose(self, name: str) -> None:
        """Lose a host with all that runs on it."""
        if name in self.ranks_on and self.job:
            self.job.end("died", self.clock)
        for move in self.moves:
            if move["completed"] is None and name in (move["source"], move["target"]):
                move.update(completed=self.clock, said=f"{name} does not respond")
        self.hosts[name].is_lost, self.hosts[name].is_entering = True, False
        self.hosts[name].remediated_at = 0.0
        self.restarts_at = self.clock + RESTART_SECONDS
