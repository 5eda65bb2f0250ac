"""The pace of a running job from its step records: rate, loss, remaining time, slowest rank, and steps since a time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import TypedDict

from ..continuity.limits import LOSS
from ..core.names import short_name
from .curve import Curve
from .received_record import ReceivedRecord, received_record

RECENT = 20
NAMED = 20
# If all ranks end together, the first one is silent for fewer steps, or seconds, than these before the next one is.
SILENT_STEPS, SILENT_SECONDS = 3, 2.0
# An evaluation or a checkpoint has no steps, and may take this many times as long as a silence in training.
IN_A_PHASE = 10
# No job is longer or silent for longer: a watch ends with its job, on request, or some minutes after its controller.
ENDLESS_SECONDS = 10 * 365 * 86400


@dataclass
class _Rank:
    """The latest records of one rank."""

    step: int = -1
    host: str = ""
    loss: float | None = None
    seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT))
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    longest: float | None = None

    def step_seconds(self) -> float | None:
        (first, from_step), (last, to_step) = self.seen[0], self.seen[-1]
        return (last - first) / (to_step - from_step) if to_step > from_step else None


@dataclass(frozen=True)
class AwaitedSteps:
    """The steps that each rank must make since a time, the seconds for them, and a file that ends the wait.

    Without any step after ``first`` seconds, the wait fails. After ``at_most`` seconds, the caller looks at the job
    before it waits on; 0 for no limit.
    """

    steps: int
    timeout: float
    since: float = 0.0
    first: float = 0.0
    ended_by: str = ""
    at_most: float = 0.0


def longest_silence(seconds: float, phase: str) -> float:
    """Return the seconds without a step after which a job is silent, in its present phase."""
    return seconds if phase == "train" else seconds * IN_A_PHASE


class Rates(TypedDict):
    """The rate of a job or of a rank; None if it is unknown."""

    images_per_sec: float | None
    steps_per_sec: float | None


class Pace(Rates):
    """The step that all ranks have made, and the rank with the fewest; sentences about ranks are empty if all is well.

    ``seconds_to_go`` is None if the number of steps is unknown.
    """

    step: int
    ranks: int
    loss: float | None
    seconds_to_go: float | None
    slowest: int | None
    host: str | None
    phase: str
    first_silent: str
    steps_by: str
    not_finite: str
    apart: str


class RankPace(Rates):
    """The last step of a rank, and the longest time between two of its steps."""

    rank: int
    host: str
    step: int
    loss: float | None
    seen: float
    longest_s: float | None


class LivePace:
    """The pace of a job; ``feed`` accepts the records of all ranks in the order of their arrival."""

    def __init__(self, total_steps: int = 0, curve: Curve | None = None) -> None:
        self._total, self._curve = total_steps, curve or Curve()
        self._ranks: dict[int, _Rank] = {}
        self._size = 0
        # The outermost phase of each rank in one: a checkpoint ends on some ranks while others still write.
        self._phases: dict[int, str] = {}
        self._by = ""
        self._not_finite = NotFinite()
        # The size of the process group of each rank whose group lacks ranks.
        self._groups: dict[int, int] = {}
        self._others = 0
        self.last_seen: float | None = None

    def feed(self, records: Iterable[Mapping[str, object]]) -> int:
        """Add records and return the number of valid ones; invalid records are left out."""
        count = 0
        for record in map(received_record, records):
            if record is None:
                continue
            count += 1
            self._curve.feed(record)
            self.last_seen, self._size = record.seen, max(self._size, record.size)
            if record.mark is None:
                self._take_step(record)
            else:
                self._take_mark(record)
        return count

    def _take_mark(self, record: ReceivedRecord) -> None:
        """Begin or end a phase of one rank, or take the loss of its last step; phases of the others go on."""
        if record.mark == LOSS:
            self._not_finite.feed(record)
            if record.rank in self._ranks:
                self._ranks[record.rank].loss = record.loss
        elif record.mark == "begin":
            self._phases.setdefault(record.rank, record.phase)
        elif self._phases.get(record.rank) == record.phase:
            del self._phases[record.rank]

    def _take_step(self, record: ReceivedRecord) -> None:
        self._by, self._others = record.by, max(self._others, record.others)
        # A rank that trains is in no phase, also if it was restarted in one.
        self._phases.pop(record.rank, None)
        self._not_finite.feed(record)
        self._groups.pop(record.rank, None)
        if record.group is not None and record.group < record.size:
            self._groups[record.rank] = record.group
        rank = self._ranks.setdefault(record.rank, _Rank())
        rank.step, rank.host = record.step, record.host
        # Trainers log a loss every few steps: the last one counts.
        rank.loss = rank.loss if record.loss is None else record.loss
        if rank.seen:
            rank.longest = max(rank.longest or 0.0, record.seen - rank.seen[-1][0])
        if rank.seen and rank.seen[-1][0] == record.seen:
            # Records that were read at once arrived at one moment: its last step counts.
            rank.seen.pop()
        rank.seen.append((record.seen, rank.step))
        if record.images_per_sec is not None:
            rank.rates.append(record.images_per_sec)

    @property
    def has_started(self) -> bool:
        """Return whether every rank has made a step."""
        return bool(self._size) and len(self._ranks) >= self._size

    @property
    def is_done(self) -> bool:
        """Return whether every rank has made the given number of steps; a job that makes more is not done."""
        return bool(self._total) and self.has_started and self.step == self._total

    @property
    def usual_silence(self) -> float:
        """Return the seconds after which a rank that trains has made another step."""
        pace = [seconds for rank in self._ranks.values() if (seconds := rank.step_seconds())]
        return max(SILENT_SECONDS, SILENT_STEPS * max(pace, default=0.0))

    @property
    def phase(self) -> str:
        """Return a phase that some rank is in, such as the checkpoint that it still writes, otherwise ``train``."""
        return next(iter(self._phases.values()), "train")

    @property
    def _goal(self) -> int:
        """Return the given number of steps; 0 if it is unknown, or if a rank has made more."""
        return self._total if all(rank.step <= self._total for rank in self._ranks.values()) else 0

    @property
    def step(self) -> int:
        """Return the step that every rank has made."""
        return min((rank.step for rank in self._ranks.values()), default=0)

    @property
    def apart(self) -> str:
        """Return which ranks step without a process group of all ranks; empty if fewer than two do."""
        if len(self._groups) < 2:
            return ""
        size, ranks = max(self._groups.values()), ", ".join(map(str, sorted(self._groups)[:NAMED]))
        more = " and others" if len(self._groups) > NAMED else ""
        groups = f"only process groups of {size}" if size > 1 else "no process group"
        return f"ranks {ranks}{more} of {self._size} formed {groups}, so that each trains a separate model"

    def summary(self) -> Pace:
        """Return the pace from the records so far."""
        slowest = self._slowest()
        pace = [seconds for rank in self._ranks.values() if (seconds := rank.step_seconds())]
        return {
            "step": self.step,
            "ranks": self._size,
            "images_per_sec": sum(median(rank.rates) for rank in self._ranks.values() if rank.rates),
            "loss": next((rank.loss for _number, rank in sorted(self._ranks.items()) if rank.loss is not None), None),
            "seconds_to_go": max(pace) * (self._goal - self.step) if pace and self._goal else None,
            "slowest": slowest,
            "host": self._ranks[slowest].host if slowest is not None else None,
            "phase": self.phase,
            "first_silent": self._first_silent(),
            "steps_per_sec": 1 / max(pace) if pace and max(pace) > 0 else None,
            "steps_by": self._source(),
            "not_finite": self._not_finite.sentence(),
            "apart": self.apart,
        }

    def ranks(self) -> list[RankPace]:
        """Return the pace of each rank."""
        return [
            {
                "rank": number,
                "host": rank.host,
                "step": rank.step,
                "loss": rank.loss,
                "images_per_sec": median(rank.rates) if rank.rates else None,
                "steps_per_sec": 1 / seconds if (seconds := rank.step_seconds()) else None,
                "seen": rank.seen[-1][0],
                "longest_s": rank.longest,
            }
            for number, rank in sorted(self._ranks.items())
        ]

    def _source(self) -> str:
        """Return the source of the steps of a script that does not record them; empty for one that does."""
        return f"{self._by}, the first of {self._others + 1}" if self._by and self._others else self._by

    def line(self) -> str:
        if not self._ranks:
            return "no step yet"
        pace = self.summary()
        parts = [f"step {pace['step']}" + (f" of {self._goal}" if self._goal else "")]
        if pace["phase"] != "train":
            parts.append(pace["phase"])
        parts += [*_rate(pace), *filter(None, [pace["apart"]])]
        if pace["not_finite"]:
            parts.append(pace["not_finite"])
        elif pace["loss"] is not None:
            parts.append(f"loss {pace['loss']:.4g}")
        if pace["seconds_to_go"] is not None:
            parts.append(f"{pace['seconds_to_go']:.0f} s to go")
        if len(self._ranks) < self._size:
            missing = sorted(set(range(self._size)) - set(self._ranks))
            more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
            parts.append(f"nothing yet from rank {', '.join(map(str, missing[:NAMED]))}{more}")
        elif self._size > 1:
            parts.append(f"slowest rank {pace['slowest']} on {pace['host']}")
        return ", ".join(parts)

    def first_silence(self) -> tuple[str, float, str] | None:
        """Return the first silence: a sentence if one rank fell silent clearly before all others, its time and host."""
        if not self._ranks:
            return None
        (first, rank), *others = sorted(self._ranks.items(), key=lambda item: (item[1].seen[-1][0], item[0]))
        at = rank.seen[-1][0]
        seconds = others[0][1].seen[-1][0] - at if others else 0.0
        if seconds < max(SILENT_SECONDS, SILENT_STEPS * (rank.step_seconds() or 0.0)):
            return "", at, rank.host
        who, step = f"rank {first} on {rank.host}", rank.step
        sentence = f"{who} fell silent first, after step {step}, {seconds:.0f} s before any other rank"
        return sentence, at, rank.host

    def _first_silent(self) -> str:
        """Return the rank that fell silent clearly before all others, as a sentence, or an empty text."""
        silence = self.first_silence()
        return silence[0] if silence else ""

    def _slowest(self) -> int | None:
        """Return the rank with the lowest step; if several have it, the one that arrived last."""
        if not self._ranks:
            return None
        return min(self._ranks, key=lambda rank: (self._ranks[rank].step, -self._ranks[rank].seen[-1][0]))


def _rate(pace: Pace) -> list[str]:
    """Return the rate as text, in images if their number is known; an empty list if no rate is known."""
    if pace["images_per_sec"]:
        return [f"{pace['images_per_sec']:.1f} images/s"]
    return [] if pace["steps_per_sec"] is None else [f"{pace['steps_per_sec']:.2f} steps/s"]


@dataclass
class StepsSince:
    """The number of steps of each rank since a time; ``feed`` accepts the records of the ranks in any order."""

    since: float
    steps: dict[int, int] = field(default_factory=dict)
    size: int = 0
    step: int = 0
    hosts: dict[int, str] = field(default_factory=dict)

    def feed(self, records: Iterable[Mapping[str, object]]) -> None:
        """Add records; the begin and the end of a phase do not count as steps."""
        for record in map(received_record, records):
            if record is None or record.mark is not None:
                continue
            self.size, self.step = max(self.size, record.size), max(self.step, record.step)
            self.hosts[record.rank] = record.host
            if record.seen >= self.since:
                self.steps[record.rank] = self.steps.get(record.rank, 0) + record.stride

    def fewest(self) -> int:
        """Return the lowest step count of all ranks; 0 if a rank has not sent a record."""
        if not self.size:
            return 0
        return min(self.steps.get(rank, 0) for rank in range(self.size))

    def behind(self, steps: int) -> list[int]:
        """Return the ranks that have made fewer steps."""
        return [rank for rank in range(self.size) if self.steps.get(rank, 0) < steps]

    def ranks_on(self, host: str) -> list[int]:
        """Return the ranks that run on a node; names match without case and domain."""
        return sorted(rank for rank, name in self.hosts.items() if short_name(name) == short_name(host))


@dataclass
class NotFinite:
    """The first step at which the gradients or the loss of each rank were not finite."""

    gradients: dict[int, int] = field(default_factory=dict)
    losses: dict[int, int] = field(default_factory=dict)
    every: int = 1

    def feed(self, record: ReceivedRecord) -> None:
        """Add a step; a finite loss clears the earlier ones."""
        if record.not_finite is not None:
            self.gradients.setdefault(record.rank, record.not_finite)
            self.every = record.checked_every
        if record.loss is None:
            return
        if math.isfinite(record.loss):
            self.losses.pop(record.rank, None)
        else:
            self.losses.setdefault(record.rank, record.step)

    def sentence(self) -> str:
        """Return which values are not finite, since which step and on which ranks; empty if all are."""
        parts = []
        if self.gradients:
            often = f" (checked every {self.every} steps)" if self.every > 1 else ""
            parts.append(f"gradients not finite since step {min(self.gradients.values())}{often} {_on(self.gradients)}")
        if self.losses:
            parts.append(f"loss not finite since step {min(self.losses.values())} {_on(self.losses)}")
        return ", ".join(parts)


def _on(ranks: dict[int, int]) -> str:
    named = ", ".join(map(str, sorted(ranks)[:NAMED]))
    more = f" and {len(ranks) - NAMED} more" if len(ranks) > NAMED else ""
    return f"on rank{'s' if len(ranks) > 1 else ''} {named}{more}"
