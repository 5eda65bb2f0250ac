"""The attempts of a job that a window by restart stops and starts again, on the simulated site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.ending.job_state import JobState
from plugins.module_utils.training.results.checkpoint import SETTLED_SECONDS, WRITTEN
from plugins.module_utils.training.runs.restartable import Checkpoints, SeenCheckpoint

from .job import STEP_SECONDS, Job
from .site import Site, Violation

if TYPE_CHECKING:
    from .modules import SimulatedCalls

# With an accepted repetition of 0, late answers alone let a job repeat more than it has to.
MOST_REPEATED_S = 500.0
INSTANT_SECONDS = 5.0


def seen(step: int, at: float, optimizer: bool) -> SeenCheckpoint:
    """Return a complete checkpoint."""
    place = f"checkpoint-{step}"
    return SeenCheckpoint(path=place, step=step, since=at, kind="torch", why="", parts=1, bytes=1, optimizer=optimizer)


def power(site: Site, worker: str, state: str, run: str) -> None:
    """Shut a worker down, or power it on."""
    site.write(run, f"power {state} of {worker}")
    if state == "off":
        site.must_be_permitted(f"shutdown of {worker}", worker)
        site.must_be_in_time(f"shutdown of {worker}")
    if state == "off" and site.job and site.job.is_running and worker in site.job.ranks.values():
        raise Violation(f"{worker} is shut down with a rank of {site.job.run_dir}")
    if state == "on" and site.workers[worker] not in site.serving():
        raise Violation(f"{worker} is powered on on {site.workers[worker]}, which is out of service")
    if state == "off":
        site.off.add(worker)
    else:
        site.off.discard(worker)


class AttemptWatch:
    """The watch of the records of an attempt."""

    records = "/results/records.jsonl"

    def __init__(self, calls: SimulatedCalls) -> None:
        self._calls = calls

    def start(self) -> None:
        self._calls.effect("start the watch", lambda: setattr(self._calls.site, "is_watched", True))

    def stop(self) -> None:
        self._calls.effect("stop the watch", lambda: setattr(self._calls.site, "is_watched", False))


class RestartableJob:
    """An attempt in a run directory."""

    def __init__(self, calls: SimulatedCalls, run_dir: str) -> None:
        self._calls, self._site, self._dir, self.name = calls, calls.site, run_dir, f"the job in {run_dir}"

    @property
    def _job(self) -> Job:
        site = self._site
        if site.job and site.job.run_dir == self._dir:
            site.attempts[self._dir] = site.job
        return {**site.jobs_so_far, **site.attempts}[self._dir]

    def refusal(self) -> str:
        return ""

    def by_owner(self) -> str:
        return self._site.resumed_by_owner

    def state(self) -> Any:
        self._reach()
        return self._calls.effect("state of the job", lambda: {"state": self._job.state, "why": ""})

    def stopped_by_owner(self) -> str:
        return "stopped by anna" if self._job.stopped_by_owner_at <= self._site.clock else ""

    def checkpoints(self) -> Checkpoints:
        self._reach()
        saved = self._calls.effect("checkpoints", lambda: list(self._job.saved))
        found = [seen(step, at, step not in self._job.without_optimizer) for step, at in saved]
        settled = [one for one in found if self._site.clock - one["since"] >= SETTLED_SECONDS]
        interval = self._job.every * STEP_SECONDS
        return {
            "folder": self._dir,
            "newest": settled[-1] if settled else None,
            "torn": {**found[-1], "why": WRITTEN} if found[len(settled) :] else None,
            "interval": interval,
            "why": "it has no complete checkpoint",
        }

    def ask_for_checkpoint(self, _signal: str, _seconds: float) -> None:
        self._calls.effect("signal", self._signal)

    def _signal(self) -> None:
        self._job.get_signal(self._site.clock)
        self._site.stopped = "" if self._job.is_running else self._dir

    def withdraw(self) -> None:
        self._calls.effect("withdraw", self._withdraw)

    def _withdraw(self) -> None:
        """Without the request, an end with the exit code 0 is that of the program."""
        if self._job.state == "stopped":
            self._job.state = "finished"

    def free_nodes(self) -> None:
        self._calls.effect("free the nodes", lambda: None)

    def stop(self) -> JobState:
        self._reach()
        self._calls.effect("stop the job", self._stop)
        return {"state": self._job.state, "exit_code": 1, "why": "stopped by the window"}

    def _stop(self) -> None:
        if self._job.is_running:
            self._site.stopped = self._dir
        self._job.end("stopped", self._site.clock)

    def start_again(self, checkpoint: SeenCheckpoint, _down: Mapping[str, Any]) -> dict[str, Any]:
        """Start the next attempt, unless it runs already."""
        self._reach()
        started = f"{self._dir}-2"
        if started not in self._site.attempts:
            self._calls.effect("start the job", lambda: self._start(started, checkpoint))
        return {"run": started, "run_dir": started, "launcher": "w1", "user": "", "nodes": [], "kubernetes": {}}

    def _start(self, run_dir: str, checkpoint: SeenCheckpoint) -> None:
        site, before = self._site, self._job
        # No program sees a stop in the instant before the start.
        if site.clock - before.stopped_by_owner_at > INSTANT_SECONDS:
            raise Violation(f"{run_dir} starts, and its owner has stopped {before.run_dir}")
        if site.is_beside() and site.beside and {*site.beside.ranks.values()} & {*before.ranks.values()}:
            raise Refused(self.name, "restart it", f"{site.beside.run_dir} runs on its nodes", "wait for its end")
        if site.job and site.job.is_running:
            raise Violation(f"{run_dir} starts while {site.job.run_dir} runs")
        if checkpoint["step"] != before.saved[-1][0]:
            raise Violation(f"{run_dir} starts from {checkpoint}, and the newest one is {before.saved[-1]}")
        if "end" not in before.at_signal and (before.step - before.saved[-1][0]) * STEP_SECONDS > MOST_REPEATED_S:
            raise Violation(f"{run_dir} repeats {before.step - before.saved[-1][0]} steps")
        site.stopped = ""
        step = int(checkpoint["step"] or 0)
        site.job = Job(before.ranks, site.clock, place=run_dir, step=step, every=before.every)
        site.attempts[run_dir] = site.job

    def watch(self) -> AttemptWatch:
        return AttemptWatch(self._calls)

    def judged(self) -> dict[str, Any]:
        self._calls.must_be_attended()
        verdict = "resumed" if self._job.is_running and self._job.step_times else "broken"
        return {"verdict": verdict, "lines": [f"{self._dir}: {verdict}"], "breaches": []}

    def machines(self) -> list[dict[str, Any]]:
        return [{"name": worker, "reach": ["ssh", worker]} for worker in sorted(set(self._job.ranks.values()))]

    def _reach(self) -> None:
        """Fail if a worker of the job is off, or on a host that does not respond."""
        site, workers = self._site, set(self._job.ranks.values())
        off = sorted(one for one in workers if one in site.off or not site.hosts[site.workers[one]].responds)
        if off:
            raise Refused(self.name, "reach it", f"{', '.join(off)} did not respond", "power it on")
