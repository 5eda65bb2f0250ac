"""Random training runs without harm: the records of the ranks and their times of arrival while workers move."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

EPOCH = 1_790_000_000.0
OBSERVER = 50_000.0
EDGE = 24  # ticks before the first and after the last move: more than the steps that a verdict needs
WARM = 4


@dataclass
class Run:
    """A run and its environment; a tick is one record of every rank."""

    rng: random.Random
    ranks: int
    step_s: float
    stride: int
    first_step: int
    limits: dict[str, Any]
    stamped: bool
    marks: bool
    ended: str
    ticks: int = EDGE + WARM
    disorder: float = 0.05
    delays: float = 0.4
    lost_clocks: float = 0.2
    unstamped: float = 0.0
    grid: float = 0.0
    ends: list[float] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    move_ticks: list[tuple[int, int]] = field(default_factory=list)
    stuns: dict[int, float] = field(default_factory=dict)
    pauses: dict[int, tuple[float, str]] = field(default_factory=dict)
    late: dict[int, tuple[float, float]] = field(default_factory=dict)
    clocks: dict[int, tuple[int, float]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    require: tuple[str, ...] = ("launcher", "transport", "vsphere")

    def calm(self) -> None:
        """Let every line arrive in time and every clock be correct."""
        self.disorder = self.delays = self.lost_clocks = self.unstamped = self.grid = 0.0

    def clock_reading(self, time: float) -> float:
        """Return a time as read from a clock with the resolution ``grid``."""
        return round(time / self.grid) * self.grid if self.grid else time

    def step(self, tick: int) -> int:
        """Return the step that a tick ends."""
        return self.first_step + tick * self.stride

    def tick_s(self) -> float:
        """Return the usual duration of a tick."""
        return self.step_s * self.stride

    def records_of(self, rank: int, from_tick: int = 0, to_tick: int | None = None) -> list[dict[str, Any]]:
        """Return the records of a rank from one tick up to another, without the marks of phases."""
        low, high = self.step(from_tick), self.step(self.ticks if to_tick is None else to_tick)
        return [r for r in self.records if r["rank"] == rank and low <= r["step"] < high and "mark" not in r]

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the verdict, with the records in random order and some of them twice."""
        records = self.records + [dict(record) for record in self.records if self.rng.random() < 0.02]
        self.rng.shuffle(records)
        return (records, self.moves, self.limits), {"ended": self.ended, "facts": self.facts, "require": self.require}


def draw(rng: random.Random, *, moves: int | None = None, ranks: int | None = None) -> Run:
    """Draw a run up to the plan of its ticks; ``fill`` then makes its records, after any harm to the plan."""
    step_s, stride = rng.choice((0.05, 0.1, 0.4, 1.0, 2.0)), rng.choice((1, 1, 1, 5, 10))
    run = Run(
        rng=rng,
        ranks=rng.choice((1, 2, 2, 3, 4)) if ranks is None else ranks,
        step_s=step_s,
        stride=stride,
        first_step=rng.choice((0, 0, 1, 5000)),
        limits=_limits(rng, step_s * stride),
        stamped=rng.random() < 0.85,
        marks=rng.random() < 0.5,
        unstamped=rng.choice((0.0, 0.0, 0.0, 0.05)),
        grid=rng.choice((0.0, 0.0, 0.0, min(step_s, 0.25))),
        ended=rng.choice(("running", "finished")),
    )
    for _index in range(rng.randint(0, 3) if moves is None else moves):
        _plan_move(run)
    run.ticks += EDGE
    for tick in rng.sample(range(WARM, run.ticks - 4), rng.choice((0, 0, 1, 3))):
        if not {tick - 1, tick, tick + 1} & set(run.stuns):
            phase = rng.choice(("eval", "checkpoint"))
            run.pauses[tick] = (rng.uniform(0.1, 0.7) * run.limits["phases"][phase], phase)
    return run


def fill(run: Run) -> Run:
    """Make the records of a planned run."""
    _let_time_pass(run)
    for start, end in run.move_ticks:
        run.moves.append(_move(run, len(run.moves), start, end))
    _delay_delivery(run)
    for rank in range(run.ranks):
        _write(run, rank)
    run.facts = {**_facts(run), **run.facts}
    return run


def identity(run: Run, rank: int, incarnation: int = 0) -> dict[str, Any]:
    """Return the keys that identify one process of the job."""
    return {
        "rank": rank,
        "size": run.ranks,
        "host": f"w{rank}",
        "pid": 100 + rank + 1000 * incarnation,
        "start": 777_000 + rank + 99 * incarnation,
        "boot_id": f"boot-of-w{rank}",
        "job": str(422313985 + incarnation),
        "generation": 0,
    }


def _limits(rng: random.Random, tick_s: float) -> dict[str, Any]:
    general = max(rng.uniform(50.0, 150.0), 8 * tick_s)
    return {
        "max_gap_s": general,
        "phases": {"eval": general * rng.uniform(1.0, 4.0), "checkpoint": general * rng.uniform(0.5, 3.0)},
        "warmup_steps": rng.choice((0, 0, 3)),
        "resume_deadline_s": rng.uniform(20.0, 120.0),
        "min_throughput_ratio": rng.choice((None, 0.7, 0.9)),
    }


def _plan_move(run: Run) -> None:
    length = run.rng.randint(4, 9)
    overlap = 2 if run.move_ticks and run.rng.random() < 0.15 else 0
    start = run.ticks - overlap
    run.move_ticks.append((start, start + length))
    run.stuns[start + run.rng.randint(1, length - 1)] = run.rng.uniform(0.0, 0.6) * run.limits["max_gap_s"]
    run.ticks = start + length + run.rng.choice((0, 2, 12, 30))


def _let_time_pass(run: Run) -> None:
    rng, now = run.rng, OBSERVER
    for tick in range(run.ticks):
        now += run.tick_s() * rng.uniform(0.8, 1.3) + (rng.uniform(0.0, 3.0) if rng.random() < 0.01 else 0.0)
        if run.step(tick) < run.first_step + run.limits["warmup_steps"]:
            now += rng.uniform(0.0, 400.0)
        now += run.stuns.get(tick, 0.0) + run.pauses.get(tick, (0.0, ""))[0]
        run.ends.append(now)


def _move(run: Run, index: int, start: int, end: int) -> dict[str, Any]:
    worker, clock = index % run.ranks, 0.0 if run.stamped else EPOCH
    return {
        "worker": f"w{worker}",
        "ranks": [worker],
        "source": f"esx{index % 5}",
        "target": f"esx{(index + 1) % 5}",
        "started": run.clock_reading(run.ends[start] + 0.2 * run.step_s + clock),
        "completed": run.clock_reading(run.ends[end] + 0.2 * run.step_s + clock),
        "ok": True,
    }


def _delay_delivery(run: Run) -> None:
    """The clock of a moved worker may lose its stun, and the observer's connection to it may recover late."""
    if not run.stamped:
        return
    for (start, end), move in zip(run.move_ticks, run.moves):
        rank = move["ranks"][0]
        stunned = [tick for tick in sorted(run.stuns) if start < tick < end]
        if not stunned:
            continue
        if run.rng.random() < run.lost_clocks:
            run.clocks[rank] = (stunned[0], -run.stuns[stunned[0]])
        if run.ranks > len(run.moves) and run.rng.random() < run.delays:
            until = move["completed"] + run.rng.uniform(0.0, 0.4) * run.limits["resume_deadline_s"]
            run.late[rank] = (run.ends[stunned[0]], min(until, run.ends[-8]))


def _write(run: Run, rank: int) -> None:
    rng = run.rng
    who, rate = identity(run, rank), rng.uniform(20.0, 900.0)
    offset = EPOCH + (rng.uniform(-3000.0, 3000.0) if run.stamped else 0.0)
    drift = 1 + (rng.uniform(-1e-4, 1e-4) if run.stamped else 0.0)
    set_at, set_by = run.clocks.get(rank, (run.ticks, 0.0))
    for tick, end in enumerate(run.ends):
        written = end + rng.uniform(0.0, 0.1) * run.step_s
        pause, phase = run.pauses.get(tick, (0.0, "train"))
        record = {
            **who,
            "t": run.clock_reading(offset + written * drift + (set_by if tick >= set_at else 0.0)),
            "step": run.step(tick),
            "phase": phase if not run.marks else "train",
            "loss": _loss(rng, tick, run.ticks),
            "images_per_sec": rate * rng.uniform(0.95, 1.05),
        }
        if run.stride > 1 or rng.random() < 0.5:
            record["stride"] = run.stride
        if pause and run.marks:
            _mark_pause(run, record, written, (pause, phase))
        run.records.append(_stamped(run, record, written))


def _loss(rng: random.Random, tick: int, ticks: int) -> Any:
    if rng.random() < 0.02 and tick < ticks - 4:
        return rng.choice((None, "nan", float("nan"), "inf", float("-inf")))
    return 2.3 / (1 + tick)


def _mark_pause(run: Run, record: dict[str, Any], written: float, pause: tuple[float, str]) -> None:
    seconds, phase = pause
    for mark, before in (("begin", seconds + 0.6 * run.tick_s()), ("end", 0.6 * run.tick_s())):
        line = {**record, "mark": mark, "phase": phase, "step": record["step"] - run.stride, "t": record["t"] - before}
        line.update(loss=None, images_per_sec=None)
        run.records.append(_stamped(run, line, written - before))


def _stamped(run: Run, record: dict[str, Any], written: float) -> dict[str, Any]:
    if run.stamped and run.rng.random() >= run.unstamped:
        seen = written + run.rng.uniform(0.0, 0.003)
        seen += run.rng.uniform(0.0, 3.0) * run.step_s if run.rng.random() < run.disorder else 0.0
        since, until = run.late.get(record["rank"], (0.0, 0.0))
        record["seen"] = run.clock_reading(max(seen, until) if since <= written < until else seen)
    return record


def _facts(run: Run) -> dict[str, Any]:
    launcher = {"host": "w0", "pid": 40, "start": 776_000, "boot_id": "boot-of-w0"}
    return {
        "launcher": {"before": launcher, "after": dict(launcher)},
        "transport": [{"before": "rdma", "after": "rdma"} for _move in run.moves],
        "vsphere": [
            {
                "hot_migration": True,
                "power_cycled": False,
                "host": {"before": move["source"], "after": move["target"]},
                "gpus": {"before": ["0000:3b:00.0"], "after": ["0000:3b:00.0"]},
            }
            for move in run.moves
        ],
    }
