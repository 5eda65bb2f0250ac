# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The cost of moves and of hosts out of service: goodput, time without a step, slow time, and the cost of a restart.

All of it is measured on the observer's clock from the first move on, or from the time at which the first host left
service. The undisturbed rate of a rank is the mean of its rate before. Marked phases, such as evaluation, are left out
of both. A job trains in step, so the job's value is the median over the ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from .limits import number
from .marked_phases import MarkedPhases
from .move_windows import Timeline, before_and_after, moment
from .pace import Pace, Stretch

# A time without a step counts as a stall if it is longer than this number of usual steps, and than a second.
USUAL_STEPS, SHORTEST_S = 3, 1.0
# A stretch is slow if it has less than this part of the undisturbed rate.
SLOW = 0.9
CHECKPOINT = "checkpoint"
Host = Mapping[str, Any]


class Observed(NamedTuple):
    """The data of a verdict from which the cost follows."""

    paces: Sequence[Pace]
    timeline: Timeline
    marked: MarkedPhases
    moves: Sequence[Mapping[str, Any]]
    evidence: Sequence[Mapping[str, Any] | None]
    hosts: Sequence[Host]
    until: float
    checkpoint_s: float | None
    gaps: Sequence[float | None]


class _Rank(NamedTuple):
    """A rank with a known undisturbed rate, in steps per second, and its stalls."""

    pace: Pace
    rate: float
    step_s: float
    stalls: Sequence[tuple[float, float]]


def read_hosts(facts: Mapping[str, Any]) -> list[Host]:
    """Return the hosts that were out of service, of which the times are known."""
    hosts = facts.get("hosts")
    given = [host for host in hosts if isinstance(host, Mapping)] if isinstance(hosts, list) else []
    return [host for host in given if moment(host.get("out_at")) is not None and host.get("host")]


def cost_of(seen: Observed) -> dict[str, Any] | None:
    """Return the cost; None if nothing happened, or if no rank has a rate before it."""
    since = _since(seen)
    if since is None or not math.isfinite(seen.until) or seen.until <= since:
        return None
    ranks = list(_ranks(seen, since))
    if not ranks:
        return None
    stalled = median(sum(end - begin - rank.step_s for begin, end in rank.stalls) for rank in ranks)
    made = [rank.pace.made_in(since, seen.until) for rank in ranks]
    shares = [steps / (rank.rate * seconds) for rank, (steps, seconds) in zip(ranks, made) if seconds > 0]
    return {
        "since": since,
        "seconds": seen.until - since,
        "ranks": len(seen.paces),
        "steps_per_s": median(rank.rate for rank in ranks),
        "goodput": median(shares) if shares else None,
        "stalled_s": stalled,
        "wasted_s": stalled * len(seen.paces),
        "wasted_unit": _unit(seen.evidence),
        "slow_s": median(_slow_s(rank, since) for rank in ranks),
        "restart": _restart(seen),
        "hosts": [_host_cost(seen, ranks, host) for host in seen.hosts],
    }


def _since(seen: Observed) -> float | None:
    starts = [group.started for group in seen.timeline.groups]
    starts += [float(host["out_at"]) for host in seen.hosts]
    return min((start for start in starts if math.isfinite(start)), default=None)


def _ranks(seen: Observed, since: float) -> Iterator[_Rank]:
    for pace in seen.paces:
        made, seconds = pace.made_in(-math.inf, since)
        if made > 0 and seconds > 0:
            step_s = seconds / made
            found = pace.silences(since, max(SHORTEST_S, USUAL_STEPS * step_s))
            stalls = [stall for stall in found if seen.timeline.owner(*stall) is not None]
            yield _Rank(pace, made / seconds, step_s, stalls)


def _slow_s(rank: _Rank, since: float) -> float:
    """Return the seconds of training slower than before, without the stalls."""
    before = sorted(one.rate for one in rank.pace.stretches(-math.inf, since))
    # A rate that the job also had undisturbed is not slow.
    floor = min([SLOW * rank.rate, *before[len(before) // 10 : len(before) // 10 + 1]])
    return sum(_slow_part(stretch, rank, floor) for stretch in rank.pace.stretches(since, math.inf))


def _slow_part(stretch: Stretch, rank: _Rank, floor: float) -> float:
    took = stretch.end - stretch.begin
    stood = sum(max(0.0, min(stretch.end, end) - max(stretch.begin, begin)) for begin, end in rank.stalls)
    moved = took - stood
    return moved if moved > 0 and stretch.rate * took / moved < floor else 0.0


def _unit(evidence: Sequence[Mapping[str, Any] | None]) -> str:
    """Return the unit of wasted time: GPU-seconds if each moved worker has a GPU, as far as observed."""
    known = [before_and_after((one or {}).get("gpus"))[0] for one in evidence]
    return "GPU-seconds" if known and all(known) else "rank-seconds"


def _restart(seen: Observed) -> dict[str, Any] | None:
    """Return the work that a job repeats if it restarts from its last checkpoint each time; None if unknown."""
    written = seen.marked.of(CHECKPOINT)
    times = list(_interruptions(seen))
    if len(written) > 1:
        begins = [one.begin for one in written]
        interval = median(after - before for before, after in zip(begins, begins[1:]))
        first = min((pace.began for pace in seen.paces if pace.began is not None), default=begins[0])
        done = [max((one.end for one in written if one.end <= time), default=first) for time in times]
        repeated, source = sum(max(0.0, time - end) for time, end in zip(times, done)), "records"
    elif seen.checkpoint_s is not None and seen.checkpoint_s > 0:
        interval, source = seen.checkpoint_s, "given"
        repeated = len(times) * interval / 2
    else:
        return None
    ranks = len(seen.paces)
    shown = {"source": source, "interval_s": interval, "restarts": len(times)}
    return {**shown, "repeated_s": repeated, "wasted_s": repeated * ranks}


def _interruptions(seen: Observed) -> Iterator[float]:
    """Yield the times at which a job that cannot move would have to stop: once for each host, or for each move."""
    if not seen.hosts:
        yield from (group.started for group in seen.timeline.groups)
        return
    for host in seen.hosts:
        if any(_left(seen.moves, host)):
            yield _began(seen.moves, host)


def _left(moves: Sequence[Mapping[str, Any]], host: Host) -> Iterator[int]:
    """Yield the number, from one on, of each move that emptied a host before it left service."""
    for index, move in enumerate(moves, start=1):
        started = moment(move.get("started"))
        if move.get("source") == host["host"] and started is not None and started <= float(host["out_at"]):
            yield index


def _began(moves: Sequence[Mapping[str, Any]], host: Host) -> float:
    starts = [moment(moves[index - 1].get("started")) for index in _left(moves, host)]
    return min([*(start for start in starts if start is not None), float(host["out_at"])])


def _host_cost(seen: Observed, ranks: Sequence[_Rank], host: Host) -> dict[str, Any]:
    back = moment(host.get("back_at"))
    end = min(seen.until, seen.until if back is None else back)
    moves = list(_left(seen.moves, host))
    gaps = [gap for index in moves if (gap := seen.gaps[index - 1]) is not None]
    return {
        "host": str(host["host"]),
        "out_at": float(host["out_at"]),
        "back_at": back,
        "reboots": int(number(host.get("reboots")) or 0),
        "moves": moves,
        "longest_stall_s": max(gaps, default=None),
        **_lost(ranks, _began(seen.moves, host), end),
    }


def _lost(ranks: Sequence[_Rank], begin: float, end: float) -> dict[str, Any]:
    """Return the images that the job lacks compared with its undisturbed rate; steps if the images are unknown."""
    unit = "images" if all(rank.pace.images for rank in ranks) else "steps"
    lost = 0.0
    for rank in ranks:
        made, seconds = rank.pace.made_in(begin, end)
        lost += (rank.rate * seconds - made) * ((rank.pace.images or 0.0) if unit == "images" else 1 / len(ranks))
    return {"lost": max(0.0, lost), "lost_unit": unit}
