"""A job in virtual time: the steps that its ranks make, and the times at which they stand still."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from plugins.module_utils.training.running import busy

STEP_SECONDS = 8.0
LAUNCHER = {"host": "w1", "pid": 7, "start": 1, "boot_id": "b"}


@dataclass
class Job:
    """A job of which each rank makes each step together with the others, as an allreduce makes them."""

    ranks: dict[int, str]
    started: float
    # Its run directory; a new one by default.
    place: str = ""
    state: str = "running"
    ended: float | None = None
    step: int = 0
    next_step: float = 0.0
    step_times: list[float] = field(default_factory=list)
    # The times at which another user set the clock of a worker's guest, and by how many seconds.
    clock_sets: list[tuple[str, float, float]] = field(default_factory=list)
    # The steps between two checkpoints, what a signal does (nothing, save, end, or both), and the last saved step.
    every: int = 25
    stopped_by_owner_at: float = math.inf
    at_signal: str = "nothing"
    saved: list[tuple[int, float]] = field(default_factory=list)
    # The steps whose checkpoints have no state of the optimizer.
    without_optimizer: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.next_step = self.started + STEP_SECONDS

    @property
    def run_dir(self) -> str:
        return self.place or f"/runs/{self.started:.1f}"

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
            if self.step % self.every == 0:
                self.saved.append((self.step, self.step_times[-1]))

    def get_signal(self, at: float) -> None:
        """Do what the program does at a signal."""
        if "save" in self.at_signal:
            self.saved.append((self.step, at))
        if "end" in self.at_signal:
            self.end("stopped", at)

    def stand_still(self, since: float, seconds: float) -> None:
        """Make no step in a span of time; the step at hand is made afterwards."""
        self.next_step = max(self.next_step, since + seconds + STEP_SECONDS / 2)

    def end(self, state: str, at: float) -> None:
        if self.is_running:
            self.state, self.ended = state, at

    def clock_of(self, worker: str, at: float) -> float:
        """Return what the clock of a worker's guest shows at a time."""
        return at + sum(seconds for name, since, seconds in self.clock_sets if name == worker and since <= at)

    def records(self, since: float, until: float) -> Iterator[dict[str, Any]]:
        """Yield the record of each step of each rank between two times, as the watch stamps them."""
        for number, at in enumerate(self.step_times):
            if not since < at <= until:
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


def jobs_on_workers(jobs: Iterable[Job], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a rollout, which fails if a job runs; training_info returns the jobs on each worker."""
    answers: dict[str, dict[str, Any]] = {}
    for job in jobs:
        about = {"run_dir": job.run_dir, "user": "anna", "asked_by": "anna@desk", "started": job.started}
        for worker in sorted(job.ranks_by_worker):
            answers.setdefault(worker, {"jobs": []})["jobs"].append(about)
    refused = busy.refusal(answers, options["remedies"])
    return {"failed": True, "msg": refused} if refused else {"unread": ""}
