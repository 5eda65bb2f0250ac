# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Harm done to training runs drawn by chance, one kind at a time, and what a verdict must then say."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from .continuity_records import EDGE, Run, draw, fill, identity


class Expected(NamedTuple):
    """The only right answer to a run."""

    verdict: str
    kinds: frozenset[str] = frozenset()  # exactly these breaches
    missing: str = ""  # something unproven begins with it
    moved: str | None = None  # all that moved, unless told otherwise
    clock_set: frozenset[int] = frozenset()  # ranks whose clock must be reported to have been set


Case = tuple[Run, Expected]
CONTINUOUS = Expected("continuous")


def broken(*kinds: str) -> Expected:
    """A job broken in these ways and no others."""
    return Expected("broken", frozenset(kinds))


def inconclusive(missing: str) -> Expected:
    """Evidence that is not enough."""
    return Expected("inconclusive", missing=missing)


def amid(run: Run) -> int:
    """Some tick with enough of them on both sides."""
    return run.rng.randint(EDGE, run.ticks - EDGE - 1)


def cut(run: Run, keeps: Callable[[dict[str, Any]], bool]) -> None:
    """Keep some records only, and have each rank's last losses finite as they were before."""
    run.records = [record for record in run.records if keeps(record)]
    for record in run.records:
        record["loss"] = 1.0


def plain(rng: random.Random) -> Case:
    return fill(draw(rng)), CONTINUOUS


def move_failed(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    failed = rng.sample(range(len(run.moves)), rng.randint(1, len(run.moves)))
    for index in failed:
        run.moves[index]["ok"] = False
        run.facts["vsphere"][index] = {"power_cycled": False, "hot_migration": rng.choice((True, None))}
    return run, CONTINUOUS._replace(moved="none" if len(failed) == len(run.moves) else "some")


def not_really_moved(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=1))
    evidence = run.facts["vsphere"][0]
    if rng.random() < 0.5:
        evidence["hot_migration"] = False
    else:
        evidence["host"]["after"] = evidence["host"]["before"]
    return run, CONTINUOUS._replace(moved="none")


def clock_set(rng: random.Random) -> Case:
    run = draw(rng, ranks=rng.randint(2, 4), moves=0)
    rank, by = rng.randrange(run.ranks), rng.choice((-3600.0, -60.0, 60.0, 3600.0))
    run.clocks[rank] = (amid(run), by)
    return fill(run), CONTINUOUS._replace(clock_set=frozenset({rank}))


def clock_set_while_moving(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.stamped = True
    rank = rng.randrange(run.ranks)
    run = fill(run)
    after, by = run.step(amid(run)), rng.choice((-3600.0, -60.0, 60.0))
    for record in run.records:
        if record["rank"] == rank and record["step"] >= after:
            record["t"] += by
    return run, CONTINUOUS._replace(clock_set=frozenset({rank}))


def loss_was_never_finite(rng: random.Random) -> Case:
    run = fill(draw(rng))
    for record in run.records:
        record["loss"] = rng.choice(("nan", "inf", float("nan"), None))
    return run, CONTINUOUS


def baseline_unsteady(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=1))
    run.limits["min_throughput_ratio"] = 0.8
    completed = run.move_ticks[0][1]
    for record in run.records:
        is_after = record["step"] > run.step(completed)
        record["images_per_sec"] = rng.uniform(60, 75) if is_after else rng.choice((50.0, 150.0, 250.0))
    return run, CONTINUOUS


def observed_until_now(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(0, 2)))
    run.ended = "running"
    last = max(record.get("seen", record["t"]) for record in run.records)
    run.facts["observed_until"] = last + rng.uniform(0.0, 0.9) * run.limits["max_gap_s"]
    return run, CONTINUOUS


def identity_changed(rng: random.Random) -> Case:
    run = fill(draw(rng))
    key = rng.choice(("host", "pid", "start", "job", "boot_id", "generation", "size"))
    shared = key in ("job", "generation", "size")
    from_tick = amid(run)
    for rank in range(run.ranks) if shared or rng.random() < 0.3 else [rng.randrange(run.ranks)]:
        for record in run.of(rank, from_tick):
            record[key] = {"size": run.ranks + 1, "generation": 1}.get(key, f"another-{key}")
    return run, broken("identity")


def restarted(rng: random.Random) -> Case:
    """A supervisor starts the job again, from its beginning, from a checkpoint, or from the very step it had reached."""
    run = fill(draw(rng))
    at_tick, back = amid(run), rng.choice((0, 3, 10_000))
    steps_back = min(back, at_tick) * run.stride
    keys = rng.choice((("pid", "start", "job"), ("start",), ()))
    if not keys and not steps_back:
        keys = ("generation",)
    for rank in range(run.ranks):
        again = identity(run, rank, incarnation=1) | {"generation": 1}
        for record in [r for r in run.records if r["rank"] == rank and r["step"] >= run.step(at_tick)]:
            record.update({key: again[key] for key in keys}, step=record["step"] - steps_back)
    return run, broken(*(["identity"] if keys else []), *(["step_repeated"] if steps_back else []))


def step_lost(rng: random.Random) -> Case:
    run = fill(draw(rng))
    run.pauses.clear()
    at_tick, count = amid(run), rng.choice((1, 1, 2))
    for record in run.of(rng.randrange(run.ranks), at_tick, at_tick + count):
        run.records.remove(record)
    return run, broken("step_lost")


def step_repeated(rng: random.Random) -> Case:
    run = draw(rng)
    run.pauses.clear()
    run = fill(run)
    record = rng.choice(run.of(rng.randrange(run.ranks), EDGE, run.ticks - 1))
    again = dict(record, t=record["t"] + 0.4 * run.step_s)
    if run.stamped:
        again["seen"] += 0.4 * run.step_s
    run.records.append(again)
    return run, broken("step_repeated")


def step_back(rng: random.Random) -> Case:
    run = draw(rng, moves=0)
    run.pauses.clear()
    run.late.clear()
    run = fill(run)
    first, second = run.of(rng.randrange(run.ranks), at_tick := amid(run), at_tick + 2)
    first["step"], second["step"] = second["step"], first["step"]
    if run.stamped:
        first["seen"], second["seen"] = sorted((first["seen"], second["seen"] + 1e-6))
    return run, broken("step_back")


def rank_stopped(rng: random.Random) -> Case:
    run = draw(rng, ranks=rng.randint(2, 4))
    run.pauses.clear()
    run.step_s = max(run.step_s, 0.1)
    run = fill(run)
    rank = rng.randrange(run.ranks)
    from_tick = rng.randint(2, run.ticks - EDGE)
    gone = run.step(from_tick)
    cut(run, lambda record: record["rank"] != rank or record["step"] < gone)
    return run, broken("rank_stopped")


def all_stopped(rng: random.Random) -> Case:
    run = draw(rng, moves=1)
    run.stamped, run.ended = True, "running"
    run.pauses.clear()
    run = fill(run)
    start = run.move_ticks[0][0] + 1
    cut(run, lambda record: record["step"] <= run.step(start))
    allowed = max(run.limits["resume_deadline_s"], run.limits["max_gap_s"])
    run.facts["observed_until"] = run.moves[0]["completed"] + allowed + 3 * run.tick_s() + 10
    return run, broken("rank_stopped", "gap")


def late(rng: random.Random) -> Case:
    """The silence is short enough, but it begins when the move is over and outlasts the deadline."""
    run = draw(rng, moves=1)
    run.pauses.clear()
    run.stuns = {run.move_ticks[0][1] + 1: 0.6 * run.limits["max_gap_s"]}
    run.limits["resume_deadline_s"] = 0.2 * run.limits["max_gap_s"]
    run.step_s, run.disorder = min(run.step_s, 0.1), 0.0
    return fill(run), broken("late")


def stun_too_long(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.stuns[rng.choice(sorted(run.stuns))] = rng.uniform(1.05, 3.0) * run.limits["max_gap_s"]
    return fill(run), broken("gap")


def pause_too_long(rng: random.Random) -> Case:
    """An evaluation within a move outlasts even the limit of its own."""
    run = draw(rng, moves=1)
    phase = rng.choice(("eval", "checkpoint"))
    limit = max(run.limits["phases"][phase], run.limits["max_gap_s"])
    start, end = run.move_ticks[0]
    run.pauses = {rng.randint(start + 1, end): (rng.uniform(1.05, 2.0) * limit, phase)}
    run.stuns.clear()
    return fill(run), broken("gap")


def gap_without_moves(rng: random.Random) -> Case:
    run = draw(rng, moves=0)
    run.pauses.clear()
    run.stuns[amid(run)] = rng.uniform(1.05, 3.0) * run.limits["max_gap_s"]
    return fill(run), broken("gap")


def died(rng: random.Random) -> Case:
    run = fill(draw(rng))
    run.ended = "died"
    return run, broken("died")


def loss_gone(rng: random.Random) -> Case:
    run = draw(rng)
    run.pauses.clear()
    run = fill(run)
    for rank in range(run.ranks) if rng.random() < 0.5 else [rng.randrange(run.ranks)]:
        for record in run.of(rank, rng.randint(EDGE, run.ticks - 1)):
            record["loss"] = rng.choice(("nan", "inf", "-inf", float("nan"), float("inf")))
    return run, broken("loss")


def transport_changed(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    by_worker = {f"w{rank}": "rdma" for rank in range(run.ranks)}
    observed: dict[str, Any] = {"before": "rdma", "after": "tcp"}
    if rng.random() < 0.5:
        observed = {"before": by_worker, "after": by_worker | {"w0": "tcp"}}
    run.facts["transport"][rng.randrange(len(run.moves))] = observed
    return run, broken("transport")


def power_cycled(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    run.facts["vsphere"][rng.randrange(len(run.moves))]["power_cycled"] = True
    return run, broken("power_cycle")


def launcher_changed(rng: random.Random) -> Case:
    run = fill(draw(rng))
    run.facts["launcher"]["after"][rng.choice(("pid", "start", "host", "boot_id"))] = "another"
    return run, broken("identity")


def slower(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.limits["min_throughput_ratio"] = 0.8
    run.pauses.clear()
    run = fill(run)
    since = run.move_ticks[rng.randrange(len(run.moves))][1]
    for rank in range(run.ranks) if rng.random() < 0.5 else [rng.randrange(run.ranks)]:
        for record in run.of(rank, since):
            record["images_per_sec"] *= 0.5
    return run, broken("throughput")


def rank_added(rng: random.Random) -> Case:
    run = draw(rng, moves=1)
    run.stamped = True
    run.pauses.clear()
    run = fill(run)
    began = run.move_ticks[0][0] + 2
    for record in run.of(0, began):
        run.records.append(record | {"rank": run.ranks, "host": "w9", "pid": 9, "start": 9, "boot_id": "boot-of-w9"})
    if rng.random() < 0.5:
        for record in run.records:
            record["size"] = run.ranks + 1
    return run, broken("identity")


def no_records(rng: random.Random) -> Case:
    run = fill(draw(rng))
    run.records.clear()
    return run, inconclusive("records")


def few_before(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.disorder = 0.0
    run = fill(run)
    rank = rng.randrange(run.ranks)
    kept = run.move_ticks[0][0] + 1 - min(3, 19 // run.stride)
    run.records = [r for r in run.records if r["rank"] != rank or r["step"] >= run.step(kept)]
    return run, inconclusive("steps")


def few_after(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    kept = run.move_ticks[-1][1] + min(3, 19 // run.stride)
    cut(run, lambda record: record["step"] <= run.step(kept))
    return run, inconclusive("steps")


def unattributed(rng: random.Random) -> Case:
    run = draw(rng, moves=1)
    run.pauses.clear()
    run.limits["resume_deadline_s"] = 2.5 * run.tick_s() + 10.0
    extra = int(run.limits["resume_deadline_s"] / (0.8 * run.tick_s())) + 2
    before = rng.random() < 0.5 or extra > 40
    if before:
        at_tick = rng.randint(4, run.move_ticks[0][0] - 1)
    else:
        run.ticks += extra + 2
        at_tick = run.move_ticks[0][1] + extra + 1
    run.stuns[at_tick] = rng.uniform(1.05, 3.0) * run.limits["max_gap_s"]
    return fill(run), inconclusive("unattributed")


def fact_missing(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    name = rng.choice(("launcher", "transport", "vsphere"))
    if rng.random() < 0.3:
        run.facts[name] = None
    elif name == "launcher":
        run.facts[name]["after"] = None
    elif name == "transport":
        run.facts[name][-1] = rng.choice((None, {"before": "rdma"}, {"before": "rdma", "after": "unproven"}))
    else:
        del run.facts[name][-1][rng.choice(("hot_migration", "power_cycled", "host", "gpus"))]
    return run, inconclusive(name)


def rank_never_heard(rng: random.Random) -> Case:
    run = fill(draw(rng, ranks=rng.randint(2, 4), moves=0))
    rank = rng.randrange(run.ranks)
    run.records = [record for record in run.records if record["rank"] != rank]
    return run, inconclusive("records")


def move_under_way(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    run.moves[-1].update(completed=None, ok=None)
    return run, inconclusive("moves")._replace(moved="none" if len(run.moves) == 1 else "some")


CASES: tuple[Callable[[random.Random], Case], ...] = (
    *([plain] * 8),
    move_failed,
    not_really_moved,
    clock_set,
    clock_set_while_moving,
    loss_was_never_finite,
    baseline_unsteady,
    observed_until_now,
    identity_changed,
    restarted,
    step_lost,
    step_repeated,
    step_back,
    rank_stopped,
    all_stopped,
    late,
    stun_too_long,
    pause_too_long,
    gap_without_moves,
    died,
    loss_gone,
    transport_changed,
    power_cycled,
    launcher_changed,
    slower,
    rank_added,
    no_records,
    few_before,
    few_after,
    unattributed,
    fact_missing,
    rank_never_heard,
    move_under_way,
)
