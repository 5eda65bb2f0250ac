"""The cost of moves and of hosts out of service: goodput, time without a step, slow time, and the cost of a restart.

All values are measured on the observer's clock, from the first move on or from the time at which the first host left
service. The undisturbed rate of a rank is its mean rate before that. Both exclude marked phases, such as evaluation.
A job trains in step, so the job's value is the median over the ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from .judged_facts import Cost, HostCost, JobFacts, Lost, Move, RestartCost
from .limits import number
from .marked_phases import MarkedPhases, Stretch
from .move_windows import Timeline, before_and_after, moment
from .pace import Pace, Silence

# A time without a step counts as a stall if it is longer than a second and than this multiple of the usual time between
# two arrivals, both before the first move and around the stall. An arrival is a single step or, if the observer reads
# several steps at once, a read.
USUAL_STEPS, SHORTEST_S = 3, 1.0
# A stretch is slow if its rate is below this fraction of the undisturbed rate.
SLOW = 0.9
CHECKPOINT = "checkpoint"
Host = Mapping[str, Any]


class Period(NamedTuple):
    """The time whose cost is measured, and in it each host's time from its first move until its return to service."""

    since: float
    until: float
    hosts: Sequence[tuple[float, float]]


class RankCost(NamedTuple):
    """The measurements of one rank with a known undisturbed rate, in steps per second."""

    rate: float
    images: float | None
    stalled_s: float
    stall_from_s: float
    slow_s: float
    made: tuple[float, float]
    made_by_host: Sequence[tuple[float, float]]
    stalled_by_host: Sequence[float]


class Observed(NamedTuple):
    """The data of a verdict from which the cost is calculated.

    ``ranks`` has None for a rank without an undisturbed rate; ``has_caution`` is true for a site that a page marks,
    such as a simulated one, whose GPUs may not exist.
    """

    period: Period | None
    ranks: Sequence[RankCost | None]
    began: float
    timeline: Timeline
    marked: MarkedPhases
    moves: Sequence[Move]
    evidence: Sequence[Mapping[str, object] | None]
    hosts: Sequence[Host]
    checkpoint_s: float | None
    saved: Sequence[float]
    gaps: Sequence[float | None]
    has_caution: bool


def read_hosts(facts: JobFacts) -> list[Host]:
    """Return the hosts that were out of service at known times."""
    hosts = facts.get("hosts")
    given = [host for host in hosts if isinstance(host, Mapping)] if isinstance(hosts, list) else []
    return [host for host in given if moment(host.get("out_at")) is not None and host.get("host")]


def period_of(timeline: Timeline, moves: Sequence[Move], hosts: Sequence[Host], until: float) -> Period | None:
    """Return the time whose cost is measured; None if nothing happened."""
    starts = [group.started for group in timeline.groups]
    starts += [float(host["out_at"]) for host in hosts]
    since = min((start for start in starts if math.isfinite(start)), default=math.inf)
    if not math.isfinite(until) or until <= since:
        return None
    return Period(since, until, [(_began(moves, host), _ended(host, until)) for host in hosts])


def rank_cost(pace: Pace, period: Period | None, timeline: Timeline) -> RankCost | None:
    """Return the measurements of one rank; None if it has no undisturbed rate."""
    if period is None:
        return None
    before = pace.undisturbed(-math.inf, period.since)
    if before is None:
        return None
    rate, usual_s = before.made / before.seconds, before.seconds / (before.reads - 1)
    shortest = max(SHORTEST_S, USUAL_STEPS * usual_s)
    found = pace.silences(period.since, shortest, USUAL_STEPS)
    stalls = [stall for stall in found if timeline.owner(stall.begin, stall.end) is not None]
    return RankCost(
        rate=rate,
        images=pace.images,
        stalled_s=_stalled_s(stalls, usual_s, (-math.inf, math.inf)),
        stall_from_s=shortest,
        slow_s=_slow_s(pace, rate, stalls, period.since),
        made=pace.made_since(period.since, period.until, rate),
        made_by_host=[pace.made_since(*span, rate) for span in period.hosts],
        stalled_by_host=[_stalled_s(stalls, usual_s, span) for span in period.hosts],
    )


def _stalled_s(stalls: Sequence[Silence], usual_s: float, span: tuple[float, float]) -> float:
    """Return the seconds that a rank stood still in a span; a silence that begins in it counts as a whole."""
    return sum(one.seconds - max(usual_s, one.usual_s) for one in stalls if one.begin < span[1] and one.end > span[0])


def cost_of(seen: Observed) -> Cost | None:
    """Return the cost; None if nothing happened, or if no rank has a rate before it."""
    ranks = [rank for rank in seen.ranks if rank is not None]
    if seen.period is None or not ranks:
        return None
    stalled = median(rank.stalled_s for rank in ranks)
    shares = [rank.made[0] / (rank.rate * rank.made[1]) for rank in ranks if rank.made[1] > 0]
    return {
        "since": seen.period.since,
        "seconds": seen.period.until - seen.period.since,
        "ranks": len(seen.ranks),
        "steps_per_s": median(rank.rate for rank in ranks),
        "goodput": median(shares) if shares else None,
        "stalled_s": stalled,
        "stall_from_s": median(rank.stall_from_s for rank in ranks),
        "wasted_s": stalled * len(seen.ranks),
        "wasted_unit": _unit(seen),
        "slow_s": median(rank.slow_s for rank in ranks),
        "restart": _restart(seen),
        "hosts": [_host_cost(seen, ranks, index) for index in range(len(seen.hosts))],
    }


def _slow_s(pace: Pace, rate: float, stalls: Sequence[Silence], since: float) -> float:
    """Return the seconds of training slower than before, without the stalls."""
    before = sorted(one.rate for one in pace.stretches(-math.inf, since))
    # A rate that also occurred without a disturbance is not slow.
    floor = min([SLOW * rate, *before[len(before) // 10 : len(before) // 10 + 1]])
    return sum(_slow_part(stretch, stalls, floor) for stretch in pace.stretches(since, math.inf))


def _slow_part(stretch: Stretch, stalls: Sequence[Silence], floor: float) -> float:
    took = stretch.end - stretch.begin
    stood = sum(max(0.0, min(stretch.end, one.end) - max(stretch.begin, one.begin)) for one in stalls)
    moved = took - stood
    return moved if moved > 0 and stretch.rate * took / moved < floor else 0.0


def _unit(seen: Observed) -> str:
    """Return the unit of wasted time: GPU-seconds if vCenter showed a GPU in each moved worker of a real site."""
    known = [before_and_after((one or {}).get("gpus"))[0] for one in seen.evidence]
    return "GPU-seconds" if known and all(known) and not seen.has_caution else "rank-seconds"


def _restart(seen: Observed) -> RestartCost | None:
    """Return the work that would be repeated; None if unknown."""
    source, begins, ends = _checkpoints(seen)
    times = list(_interruptions(seen))
    interval = median(after - before for before, after in zip(begins, begins[1:])) if len(begins) > 1 else None
    if ends:
        done = [max((end for end in ends if end <= time), default=seen.began) for time in times]
        repeated = sum(max(0.0, time - end) for time, end in zip(times, done))
    elif seen.checkpoint_s is not None and seen.checkpoint_s > 0:
        interval, source = seen.checkpoint_s, "given"
        repeated = len(times) * interval / 2
    else:
        return None
    return {
        "source": source,
        "interval_s": interval,
        "restarts": len(times),
        "repeated_s": repeated,
        "wasted_s": repeated * len(seen.ranks),
    }


def _checkpoints(seen: Observed) -> tuple[str, Sequence[float], Sequence[float]]:
    """Return what shows the checkpoints, and when they began and ended: the records, or files in the outputs."""
    written = seen.marked.of(CHECKPOINT)
    if len(written) > 1:
        return "records", [one.begin for one in written], [one.end for one in written]
    return "outputs", seen.saved, seen.saved


def _interruptions(seen: Observed) -> Iterator[float]:
    """Yield the times at which a job that cannot move would have to stop: once for each host, or for each move."""
    if not seen.hosts:
        yield from (group.started for group in seen.timeline.groups)
        return
    for host in seen.hosts:
        if any(_left(seen.moves, host)):
            yield _began(seen.moves, host)


def _left(moves: Sequence[Move], host: Host) -> Iterator[int]:
    """Yield the number, starting at one, of each move that emptied a host before it left service."""
    for index, move in enumerate(moves, start=1):
        started = moment(move.get("started"))
        if move.get("source") == host["host"] and started is not None and started <= float(host["out_at"]):
            yield index


def _began(moves: Sequence[Move], host: Host) -> float:
    starts = [moment(moves[index - 1].get("started")) for index in _left(moves, host)]
    return min([*(start for start in starts if start is not None), float(host["out_at"])])


def _ended(host: Host, until: float) -> float:
    back = moment(host.get("back_at"))
    return until if back is None else min(until, back)


def _host_cost(seen: Observed, ranks: Sequence[RankCost], index: int) -> HostCost:
    host = seen.hosts[index]
    moves = list(_left(seen.moves, host))
    gaps = [gap for number_ in moves if (gap := seen.gaps[number_ - 1]) is not None]
    return {
        "host": str(host["host"]),
        "out_at": float(host["out_at"]),
        "back_at": moment(host.get("back_at")),
        "reboots": int(number(host.get("reboots")) or 0),
        "moves": moves,
        "longest_stall_s": max(gaps, default=None),
        **_lost(ranks, index),
    }


def _lost(ranks: Sequence[RankCost], index: int) -> Lost:
    unit = "images" if all(rank.images for rank in ranks) else "steps"
    lost = slower = 0.0
    for rank in ranks:
        worth = (rank.images or 0.0) if unit == "images" else 1 / len(ranks)
        made, seconds = rank.made_by_host[index]
        stood = rank.rate * rank.stalled_by_host[index]
        lost += stood * worth
        slower += (rank.rate * seconds - made - stood) * worth
    return {"lost": lost, "slower": max(0.0, slower), "lost_unit": unit}
