"""Training runs that are continuous or undecidable, with the verdict that each must get."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from .records import EDGE, EPOCH, Run, draw, fill


class Expected(NamedTuple):
    """The only correct verdict on a run."""

    verdict: str
    kinds: frozenset[str] = frozenset()  # exactly these breaches
    missing: str = ""  # some entry of "unproven" starts with it
    moved: str | None = None  # by default, whatever moved
    clock_set: frozenset[int] = frozenset()  # ranks whose clock must be reported to have been set


Case = tuple[Run, Expected]
CONTINUOUS = Expected("continuous")


def broken(*kinds: str) -> Expected:
    """Return the verdict on a job with exactly these breaches."""
    return Expected("broken", frozenset(kinds))


def inconclusive(missing: str) -> Expected:
    """Return the verdict on insufficient evidence."""
    return Expected("inconclusive", missing=missing)


def amid(run: Run) -> int:
    """Return a random tick with enough ticks on both sides."""
    return run.rng.randint(EDGE, run.ticks - EDGE - 1)


def cut(run: Run, keeps: Callable[[dict[str, Any]], bool]) -> None:
    """Keep only some records, and keep the last losses of each rank finite."""
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
    if not run.stamped:
        run.pauses.clear()
    run.unstamped = 0.0
    rank, by = rng.randrange(run.ranks), rng.choice((-3600.0, -60.0, 60.0, 3600.0))
    run.clocks[rank] = (amid(run), by)
    return fill(run), CONTINUOUS._replace(clock_set=frozenset({rank}))


def clock_set_while_moving(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.stamped = True
    run.calm()
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
        record["images_per_sec"] = (
            rng.uniform(60, 75) if is_after else (50.0, 150.0, 250.0)[record["step"] // run.stride % 3]
        )
    return run, CONTINUOUS


def observed_until_now(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(0, 2)))
    run.ended = "running"
    last = run.ends[-1] + (0.0 if run.stamped else EPOCH)
    run.facts["observed_until"] = last + rng.uniform(0.0, 0.9) * run.limits["max_gap_s"]
    return run, CONTINUOUS


def one_rank_unstamped(rng: random.Random) -> Case:
    """The clock of a rank without stamps of the observer is derived from the steps that it shares with the others."""
    run = draw(rng, ranks=rng.randint(2, 4))
    run.stamped = True
    run.calm()
    run = fill(run)
    for record in run.records_of(rng.randrange(run.ranks)):
        del record["seen"]
    return run, CONTINUOUS


def no_records(rng: random.Random) -> Case:
    run = fill(draw(rng))
    run.records.clear()
    return run, inconclusive("records")


def few_before(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.calm()
    run = fill(run)
    rank = rng.randrange(run.ranks)
    kept = run.move_ticks[0][0] + 1 - min(3, 19 // run.stride)
    run.records = [r for r in run.records if r["rank"] != rank or r["step"] >= run.step(kept)]
    return run, inconclusive("steps")


def few_after(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.calm()
    run = fill(run)
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


def rank_without_records(rng: random.Random) -> Case:
    run = fill(draw(rng, ranks=rng.randint(2, 4), moves=0))
    rank = rng.randrange(run.ranks)
    run.records = [record for record in run.records if record["rank"] != rank]
    return run, inconclusive("records")


def loss_gone_at_the_end(rng: random.Random) -> Case:
    """Too few losses are infinite to distinguish a diverged job from a search for the loss scale."""
    run = fill(draw(rng))
    last = max(record["step"] for record in run.records)
    few = rng.randint(0, 19 - run.stride)
    for record in run.records:
        record["loss"] = 1.0 if record["step"] < last - few else rng.choice(("nan", "inf", float("inf")))
    return run, inconclusive("loss: rank")


def identity_on_one_side(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=1))
    while any("seen" not in record for record in run.records):
        run = fill(draw(rng, moves=1))
    key, is_after = rng.choice(("pid", "start", "boot_id")), rng.random() < 0.5
    border = run.moves[0]["started"] if is_after else run.moves[0]["completed"]
    for record in run.records:
        when = record["seen"]
        if record["rank"] == 0 and (when >= border if is_after else when <= border):
            record[key] = None
    return run, inconclusive("identity: rank 0 reported")


def move_without_a_time(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=1))
    run.moves[0]["started"] = rng.choice((None, "yesterday", float("nan")))
    return run, inconclusive("moves: move 1")._replace(moved="none")


def move_under_way(rng: random.Random) -> Case:
    run = fill(draw(rng, moves=rng.randint(1, 3)))
    run.moves[-1].update(completed=None, ok=None)
    return run, inconclusive("moves")._replace(moved="none" if len(run.moves) == 1 else "some")


CONTINUOUS_CASES = (
    plain,
    move_failed,
    not_really_moved,
    clock_set,
    clock_set_while_moving,
    loss_was_never_finite,
    baseline_unsteady,
    observed_until_now,
    one_rank_unstamped,
)
INCONCLUSIVE_CASES = (
    no_records,
    few_before,
    few_after,
    unattributed,
    fact_missing,
    rank_without_records,
    move_under_way,
    loss_gone_at_the_end,
    identity_on_one_side,
    move_without_a_time,
)
