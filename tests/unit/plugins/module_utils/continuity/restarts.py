"""Random runs that were stopped and resumed, and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from plugins.module_utils.continuity.restart_facts import Attempt, GivenCheckpoint, RestartLimits, RestartVerdict
from plugins.module_utils.continuity.restart_steps import read_steps
from plugins.module_utils.continuity.restart_verdict import judge

PROGRAM = {"code": "c0de", "data": "da7a", "packages": "9ac4", "command": "python train.py {resume}", "ranks": "2"}
BEGAN, DOWN = 1000.0, 60.0


@dataclass(frozen=True)
class Run:
    """A run that was stopped after ``last`` steps, and that goes on after ``saved`` ones; it ends at ``end``."""

    ranks: int
    saved: int
    last: int
    end: int
    stride: int = 1
    seconds: float = 0.5
    seed: int = 1

    def loss(self, rank: int, step: int) -> float:
        """Return the loss of a step, which falls with some noise."""
        return 2.0 / (1 + 0.05 * step) + Random(f"{self.seed} {rank} {step}").random() / 5

    def records(self, begin: int, end: int, began: float) -> list[dict[str, Any]]:
        """Return what the ranks record from the step after ``begin`` to the step ``end``."""
        return list(self._records(begin, end, began))

    def _records(self, begin: int, end: int, began: float) -> Iterator[dict[str, Any]]:
        for step in range(begin + 1, end + 1):
            if step % self.stride == 0:
                at = began + (step - begin) * self.seconds
                for rank in range(self.ranks):
                    written = {"t": at, "seen": at + 0.2, "rank": rank, "step": step, "stride": self.stride}
                    yield {**written, "phase": "train", "loss": self.loss(rank, step)}

    @property
    def first_records(self) -> list[dict[str, Any]]:
        return self.records(0, self.last, BEGAN)

    @property
    def restarted(self) -> float:
        return BEGAN + self.last * self.seconds + DOWN

    @property
    def second_records(self) -> list[dict[str, Any]]:
        return self.records(self.saved, self.end, self.restarted)

    def attempts(self) -> list[Attempt]:
        program = {**PROGRAM, "ranks": str(self.ranks)}
        given = GivenCheckpoint(f"step{self.saved}.pt", self.saved)
        stopped = BEGAN + self.last * self.seconds + 2
        one = Attempt("one", program, read_steps(self.first_records), self.ranks, "stopped", "", BEGAN - 5, stopped)
        times = {"started": self.restarted - 8, "ended": self.restarted + 9999}
        ranks = read_steps(self.second_records)
        return [one, Attempt("two", program, ranks, self.ranks, "finished", checkpoint=given, **times)]


RUNS = st.builds(
    lambda ranks, saved, repeated, more, seed: Run(ranks, saved, saved + repeated, saved + repeated + more, seed=seed),
    ranks=st.integers(1, 4),
    saved=st.integers(6, 60),
    repeated=st.integers(0, 30),
    more=st.integers(2, 30),
    seed=st.integers(0, 1000),
)


def verdict(attempts: list[Attempt], **limits: Any) -> RestartVerdict:
    return judge(attempts, RestartLimits(**limits))


def kinds(found: RestartVerdict) -> set[str]:
    return {breach.kind for breach in found.breaches}


def again(run: Run, records: list[dict[str, Any]], **more: Any) -> list[Attempt]:
    """Return the attempts, the second one with other records or other facts."""
    one, two = run.attempts()
    return [one, replace(two, ranks=read_steps(records), **more)]
