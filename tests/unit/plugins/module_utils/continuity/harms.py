"""Random training runs with one kind of harm each, and the breaches that the verdict must name."""

from __future__ import annotations

import random
from typing import Any

from .cases import Case, amid, broken, cut
from .records import EDGE, draw, fill, identity


def identity_changed(rng: random.Random) -> Case:
    run = fill(draw(rng))
    key = rng.choice(("host", "pid", "start", "job", "boot_id", "generation", "size"))
    shared = key in ("job", "generation", "size")
    from_tick = amid(run)
    for rank in range(run.ranks) if shared or rng.random() < 0.3 else [rng.randrange(run.ranks)]:
        for record in run.records_of(rank, from_tick):
            record[key] = {"size": run.ranks + 1, "generation": 1}.get(key, f"another-{key}")
    return run, broken("identity")


def restarted(rng: random.Random) -> Case:
    """A supervisor restarts the job: from its beginning, from a checkpoint, or from the step that it had reached."""
    run = draw(rng)
    run.disorder = 0.0
    run = fill(run)
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
    run = draw(rng)
    run.pauses.clear()
    run.step_s = min(run.step_s, 0.4)
    run = fill(run)
    at_tick, count = amid(run), rng.choice((1, 1, 2))
    for record in run.records_of(rng.randrange(run.ranks), at_tick, at_tick + count):
        run.records.remove(record)
    return run, broken("step_lost")


def step_repeated(rng: random.Random) -> Case:
    run = draw(rng)
    run.pauses.clear()
    run.calm()
    run = fill(run)
    record = rng.choice(run.records_of(rng.randrange(run.ranks), EDGE, run.ticks - 1))
    again = dict(record, t=record["t"] + 0.4 * run.step_s)
    if "seen" in again:
        again["seen"] += 0.4 * run.step_s
    run.records.append(again)
    return run, broken("step_repeated")


def step_back(rng: random.Random) -> Case:
    run = draw(rng, moves=0)
    run.pauses.clear()
    run.calm()
    run = fill(run)
    first, second = run.records_of(rng.randrange(run.ranks), at_tick := amid(run), at_tick + 2)
    first["step"], second["step"] = second["step"], first["step"]
    if run.stamped:
        first["seen"], second["seen"] = sorted((first["seen"], second["seen"] + 1e-6))
    return run, broken("step_back")


def rank_stopped(rng: random.Random) -> Case:
    run = draw(rng, ranks=rng.randint(2, 4))
    run.pauses.clear()
    run.step_s = max(run.step_s, 0.1)
    run.calm()
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


def resumed_late(rng: random.Random) -> Case:
    """The silence is short enough, but it begins after the move and exceeds the deadline."""
    run = draw(rng, moves=1)
    run.pauses.clear()
    run.stuns = {run.move_ticks[0][1] + 1: 0.6 * run.limits["max_gap_s"]}
    run.limits["resume_deadline_s"] = 0.2 * run.limits["max_gap_s"]
    run.step_s = min(run.step_s, 0.1)
    run.calm()
    return fill(run), broken("resumed_late")


def stun_too_long(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.stuns[rng.choice(sorted(run.stuns))] = rng.uniform(1.05, 3.0) * run.limits["max_gap_s"]
    return fill(run), broken("gap")


def pause_too_long(rng: random.Random) -> Case:
    """An evaluation within a move exceeds even the limit of its phase."""
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
        for record in run.records_of(rank, amid(run)):
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


def switched_by_others(rng: random.Random) -> Case:
    """A worker is reset through vCenter, with or without moves."""
    run = fill(draw(rng))
    later = run.records_of(0, amid(run))
    at = next((record["seen"] for record in later if "seen" in record), later[0]["t"])
    run.facts["power"] = [{"worker": later[0]["host"], "at": at, "by": "eve", "what": "VmResettingEvent"}]
    return run, broken("power_cycle")


def parameters_differ(rng: random.Random) -> Case:
    run = fill(draw(rng))
    run.facts["checksums"] = {f"w{rank}:summary{rank}.json": "aa" for rank in range(run.ranks)}
    run.facts["checksums"]["w9:summary9.json"] = "bb"
    return run, broken("parameters")


def slower(rng: random.Random) -> Case:
    run = draw(rng, moves=rng.randint(1, 3))
    run.limits["min_throughput_ratio"] = 0.8
    run.pauses.clear()
    run = fill(run)
    since = run.move_ticks[rng.randrange(len(run.moves))][1]
    for rank in range(run.ranks) if rng.random() < 0.5 else [rng.randrange(run.ranks)]:
        for record in run.records_of(rank, since):
            record["images_per_sec"] *= 0.5
    return run, broken("throughput")


def rank_added(rng: random.Random) -> Case:
    run = draw(rng, moves=1)
    run.stamped = True
    run.pauses.clear()
    run.calm()
    run = fill(run)
    began = run.move_ticks[0][0] + 2
    for record in run.records_of(0, began):
        run.records.append(record | {"rank": run.ranks, "host": "w9", "pid": 9, "start": 9, "boot_id": "boot-of-w9"})
    has_size = rng.random() < 0.5
    for record in run.records:
        record["size"] = run.ranks if has_size else None
    return run, broken("identity")


BROKEN_CASES = (
    identity_changed,
    restarted,
    step_lost,
    step_repeated,
    step_back,
    rank_stopped,
    all_stopped,
    resumed_late,
    stun_too_long,
    pause_too_long,
    gap_without_moves,
    died,
    loss_gone,
    transport_changed,
    power_cycled,
    launcher_changed,
    switched_by_others,
    parameters_differ,
    slower,
    rank_added,
)
