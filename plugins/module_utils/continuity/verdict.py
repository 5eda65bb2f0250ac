"""The continuity verdict: whether a training job continued without interruption while its workers were moved.

``records`` are step records (``t, step, stride, rank, size, host, pid, start, boot_id, job, generation, phase, loss,
images_per_sec``), stamped by the observer with ``seen``; one with ``mark: begin`` or ``mark: end`` is about a phase,
no step; ``mark: loss`` is a loss logged after it. ``judged_facts.py`` has the types of ``moves`` and ``facts``, of
which each part is optional.

``limits``: ``max_gap_s`` (120; a number, or one for each phase), ``phases`` (phase -> seconds), ``warmup_steps`` (0),
``resume_deadline_s`` (120), ``min_throughput_ratio`` (not judged unless given).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf, sqrt
from statistics import median
from typing import Callable, List, NamedTuple

from .clock import tracks_of
from .cost import Observed, Period, RankCost, cost_of, period_of, rank_cost, read_hosts
from .gaps import MOVED_ONLY, OTHERS, Gap, Judge, find_gaps, gap_breaches
from .job_identity import absent_ranks, identity_breaches, one_sided, unseen_identity
from .judged_facts import Cost, JobFacts, Move, MoveVerdict, ShownGap, Verdict
from .limits import LISTED, TRAIN, Breach, Limits, bounded, in_order, left_out, listed, number, read_limits
from .marked_phases import MarkedPhases
from .move_windows import MoveGroup, Timeline, external_text, faults, is_external, moment, move_name, moved, ranks_of
from .observations import evidence_of, fact_breaches, judge_power, missing_facts
from .pace import ALWAYS, KeptPace, Pace, few_steps, least_steps, rates_around
from .step_progress import (
    Surroundings,
    few_losses,
    late_breaches,
    loss_breaches,
    resumed_after,
    resumed_s,
    silence_in_move,
    step_breaches,
    stopped_breaches,
)
from .step_records import Track, read_lines

ENDINGS = ("running", "finished", "died")


def verdict(
    records: Iterable[dict[str, object]],
    moves: Sequence[Move],
    limits: dict[str, object],
    *,
    ended: str,
    facts: JobFacts | None = None,
    require: Collection[str] = ("launcher", "transport", "vsphere"),
) -> Verdict:
    """Return ``continuous``, ``broken`` or ``inconclusive`` with all reasons; raise ValueError for invalid limits."""
    return judged(read_case(records, moves, limits, ended=ended, facts=facts), require)


def read_case(
    records: Iterable[dict[str, object]],
    moves: Sequence[Move],
    limits: dict[str, object],
    *,
    ended: str,
    facts: JobFacts | None = None,
) -> Case:
    """Read the records once, for the verdict and the timeline; raise ValueError for invalid limits."""
    if ended not in ENDINGS:
        raise ValueError(f"ended is {ended!r}: expected one of {', '.join(ENDINGS)}.")
    return Case(records, moves, read_limits(limits), ended, facts or {})


def judged(case: Case, require: Collection[str]) -> Verdict:
    breaches = in_order(case.breaches())
    missing = [*case.missing(), *missing_facts(case.facts, case.moves, require)]
    return {
        "verdict": "broken" if breaches else "inconclusive" if missing else "continuous",
        "moved": _moved([done for move, done in zip(case.moves, case.moved) if not is_external(move)]),
        "breaches": [breach._asdict() for breach in breaches[:LISTED]],
        "unproven": listed([*missing, *case.unproven()]),
        "notes": listed([*left_out(breaches), *case.notes()]),
        "longest_gap_s": case.longest.seconds if case.longest else None,
        **case.details(),
    }


class Case:
    """The data of one verdict; ``tracks`` are the records of its ranks."""

    def __init__(
        self,
        records: Iterable[Mapping[str, object]],
        moves: Sequence[Move],
        limits: Limits,
        ended: str,
        facts: JobFacts,
    ) -> None:
        self.moves, self.limits, self.ended, self.facts = moves, limits, ended, facts
        self.timeline = Timeline(moves, limits.resume_deadline_s)
        reading = read_lines(records)
        self.unreadable, self.beyond = reading.unreadable, reading.beyond
        self.tracks, self.clock_steps = tracks_of(reading.ranks, self.timeline, reading.is_stamped)
        first_steps = [track.first_step for track in self.tracks if track.first_step is not None]
        first_step = min(first_steps, default=0) + limits.warmup_steps
        self.marked = MarkedPhases(self.tracks, limits)
        self.moved = moved(moves, evidence_of(facts, "vsphere", moves))
        self.observed_until = number(facts.get("observed_until")) if ended == "running" else None
        self.power = judge_power(facts, moves, self.tracks, ended)
        ranks = frozenset(track.rank for track in self.tracks)
        self.judge = Judge(self.timeline, limits, ranks, first_step, self.marked)
        self.hosts = read_hosts(facts)
        last = max((track.last.at for track in self.tracks), default=-math.inf)
        until = last if self.observed_until is None else max(last, self.observed_until)
        self.period = period_of(self.timeline, moves, self.hosts, until)
        self.measured = _Measured(self.tracks, self.judge, self.period)
        self.gaps = find_gaps(self.tracks, self.judge, self.observed_until)
        self.longest = self.gaps.by_phase.get(TRAIN)

    def breaches(self) -> Iterator[Breach]:
        limits, timeline = self.limits, self.timeline
        yield from fact_breaches(self.facts, self.moves)
        yield from self.power.breaches
        yield from identity_breaches(self.tracks, timeline, limits.resume_deadline_s)
        yield from self.measured.breaches
        yield from gap_breaches(self.gaps, bool(self.moves))
        yield from self.measured.throughput.breaches
        if self.ended == "died":
            last = max((track.last.at for track in self.tracks), default=None)
            why = str(self.facts.get("died") or "").strip()
            reason = f"the job died{': ' if why else ''}{why}"
            yield Breach("died", None, None, last, reason + silence_in_move(self.tracks, timeline, self.moves))
        else:
            surroundings = Surroundings(timeline, limits, self.marked)
            yield from stopped_breaches(self.tracks, surroundings, self.ended, self.observed_until)

    def missing(self) -> Iterator[str]:
        """Yield the missing evidence, without which a job without a breach is inconclusive."""
        if not self.tracks:
            yield "records: none"
        if self.beyond:
            yield f"records: {self.beyond} were omitted, because no job has that number of ranks, phases or processes"
        absent = absent_ranks(self.tracks, {rank for move in self.moves for rank in ranks_of(move)})
        if absent:
            yield f"records: none of {absent}"
        yield from faults(self.moves)
        names = [" and ".join(move_name(self.moves, index) for index in one.moves) for one in self.timeline.groups]
        for group, name in zip(self.timeline.groups, names):
            yield from few_steps(self.measured.paces, group, name)
        yield from one_sided(self.tracks, self.timeline, names)
        yield from self.power.missing
        for track, pace in zip(self.tracks, self.measured.paces):
            yield from few_losses(track)
            if not pace.steps(*ALWAYS):
                yield f"steps: rank {track.rank} made none after the warm-up of {self.limits.warmup_steps}"
        for gap in self._unattributed():
            yield f"unattributed: {gap.sentence()}, outside the window of every move"

    def unproven(self) -> Iterator[str]:
        """Yield the missing evidence that the verdict does not need."""
        unstamped = sum(track.count - track.stamps for track in self.tracks)
        if unstamped:
            yield f"observer's clock: {unstamped} records have no `seen`, so the clocks of their ranks replace it"
        if self.unreadable:
            yield f"records: {self.unreadable} lack a rank, a step or a time"
        yield from unseen_identity(self.tracks)
        if self.tracks and not any(kind.loss for track in self.tracks for kind in track.kinds):
            yield "loss: no rank reported one, so it was not judged"
        yield from self.measured.throughput.unproven
        for key in self.limits.unknown:
            yield f"limits: {key} is not a limit and was ignored"

    def notes(self) -> Iterator[str]:
        yield from (external_text(move) for move in self.moves if is_external(move))
        yield from self.power.notes
        silences = self.facts.get("silences")
        yield from map(str, silences if isinstance(silences, list) else ())
        for group in self.timeline.groups:
            if len(group.moves) > 1:
                yield f"{' and '.join(move_name(self.moves, index) for index in group.moves)} overlap: judged as one"
        for step in self.clock_steps:
            yield f"the clock of rank {step.rank} was set by {step.seconds:.1f} s before step {step.step}"

    def details(self) -> Verdict:
        sources = [self.judge.source(group) for group in self.timeline.groups if self.tracks]
        return {
            "longest_gap": _shown(self.longest),
            "longest_gap_by_phase_s": {phase: gap.seconds for phase, gap in self.gaps.by_phase.items()},
            "source": MOVED_ONLY if MOVED_ONLY in sources else OTHERS,
            "moves": self._by_move(),
            "unattributed": [_shown(gap) for gap in self._unattributed()[:LISTED]],
            "clock_steps": [step._asdict() for step in self.clock_steps[:LISTED]],
            "cost": self._cost(),
        }

    def _cost(self) -> Cost | None:
        measured = {index: gap.seconds for group, gap in self.gaps.by_group.items() for index in group.moves}
        seen = Observed(
            period=self.period,
            ranks=self.measured.costs,
            began=min((track.first.at for track in self.tracks), default=0.0),
            timeline=self.timeline,
            marked=self.marked,
            moves=self.moves,
            evidence=evidence_of(self.facts, "vsphere", self.moves),
            hosts=self.hosts,
            checkpoint_s=moment(self.facts.get("checkpoint_s")),
            saved=_times(self.facts.get("saved")),
            gaps=[measured.get(index) for index in range(len(self.moves))],
            has_caution=bool(self.facts.get("site")),
        )
        return cost_of(seen)

    def _by_move(self) -> list[MoveVerdict]:
        measured = {index: self._by_group(around) for around in self.timeline.around() for index in around[1].moves}
        return [
            {**_of_move(move), "moved": done, **measured.get(index, {})}
            for index, (move, done) in enumerate(zip(self.moves, self.moved))
        ]

    def _by_group(self, around: tuple[float, MoveGroup, float]) -> MoveVerdict:
        group = around[1]
        gap = self.gaps.by_group.get(group)
        return {
            "judged_with": list(group.moves),
            "gap_s": gap.seconds if gap else None,
            "gap": _shown(gap),
            "source": self.judge.source(group),
            "throughput": rates_around(self.measured.paces, around),
            "steps": least_steps(self.measured.paces, group),
            "resumed_s": self.measured.resumed_s(group),
        }

    def _unattributed(self) -> list[Gap]:
        return [gap for gap in self.gaps.too_long if gap.group is None and self.moves]


class _Measured:
    """The results that need all lines of a rank, computed rank by rank."""

    def __init__(self, tracks: Sequence[Track], judge: Judge, period: Period | None) -> None:
        timeline, limits, _ranks, first_step, marked = judge
        self.breaches: list[Breach] = []
        self.paces: list[KeptPace] = []
        self.costs: list[RankCost | None] = []
        self.throughput = Throughput([], [])
        self._resumed: list[dict[MoveGroup, float | None]] = []
        for track in tracks:
            self.breaches += bounded(step_breaches(track))
            self.breaches += loss_breaches(track)
            self.breaches += late_breaches(track, timeline, limits, marked)
            pace = Pace(track, first_step, marked)
            slowed = judge_throughput([pace], timeline, limits.min_throughput_ratio)
            self.throughput.breaches.extend(slowed.breaches)
            self.throughput.unproven.extend(slowed.unproven)
            self.paces.append(KeptPace(pace, timeline))
            self.costs.append(rank_cost(pace, period, timeline))
            self._resumed.append(resumed_after(track, timeline.groups))

    def resumed_s(self, group: MoveGroup) -> float | None:
        """Return the seconds from a move to the first line of the last rank; None if a rank wrote no line."""
        return resumed_s([one[group] for one in self._resumed])


def _moved(each: Sequence[bool]) -> str:
    if not any(each):
        return "none"
    return "all" if all(each) else "some"


def _of_move(move: Move) -> MoveVerdict:
    return {
        "worker": move.get("worker"),
        "ranks": move.get("ranks"),
        "ok": move.get("ok"),
        "started": move.get("started"),
        "completed": move.get("completed"),
    }


def _times(given: object) -> list[float]:
    times = (moment(one) for one in given) if isinstance(given, list) else ()
    return sorted(time for time in times if time is not None)


def _shown(gap: Gap | None) -> ShownGap | None:
    if gap is None:
        return None
    return {"rank": gap.rank, "step": gap.step, "at": gap.begin, "seconds": gap.seconds, "phase": gap.phase}


ENOUGH_RATES = 10
# A fall by more standard errors than this is certain.
CERTAIN = 5
Rates = Callable[[float, float], List[float]]


class Throughput(NamedTuple):
    """The ranks that became slower, and those with too few rates to judge."""

    breaches: list[Breach]
    unproven: list[str]


def judge_throughput(paces: Iterable[Pace], timeline: Timeline, ratio: float | None) -> Throughput:
    """Return the ranks that a move slowed more than the ratio allows, compared with before it or before all moves."""
    found = Throughput([], [])
    if ratio is None:
        return found
    for pace in paces:
        for around in timeline.around():
            first_move = timeline.groups[0].started
            fall = _fall(pace.rates, "images/s", around, first_move, ratio)
            seen = _fall(pace.seen_rates, "steps/s on the observer's clock", around, first_move, ratio)
            if seen is not None and seen.is_reported:
                fall = fall if fall is not None and fall.is_reported else seen
            if fall is None:
                continue
            if fall.is_reported:
                at = around[1].completed
                found.breaches.append(Breach("throughput", pace.rank, None, at, f"rank {pace.rank} {fall.sentence}"))
                break
            found.unproven.append(f"throughput: rank {pace.rank} {fall.sentence}")
    return found


class _Fall(NamedTuple):
    is_reported: bool
    sentence: str


def _fall(
    rates: Rates, unit: str, around: tuple[float, MoveGroup, float], first_move: float, ratio: float
) -> _Fall | None:
    end_before, group, next_start = around
    before = _enough(rates, (end_before, group.started), (-inf, group.started))
    # A job may take the whole window of a move to regain its pace.
    after = _enough(rates, (group.ends, next_start), (group.completed, next_start), (group.completed, inf))
    if min(len(before), len(after)) < ENOUGH_RATES:
        return _Fall(False, f"reported only {len(before)} rates before and {len(after)} after a move")
    falls = [_compare(baseline, after, ratio, unit) for baseline in (before, rates(-inf, first_move))]
    given = [fall for fall in falls if fall is not None]
    return max(given, key=lambda fall: fall.is_reported, default=None)


def _enough(rates: Rates, *spans: tuple[float, float]) -> list[float]:
    """Return the rates of the first span with enough of them, otherwise those of the last span."""
    found: list[float] = []
    for span in spans:
        found = rates(*span)
        if len(found) >= ENOUGH_RATES:
            break
    return found


def _compare(before: list[float], after: list[float], ratio: float, unit: str) -> _Fall | None:
    if len(before) < ENOUGH_RATES or median(after) >= ratio * median(before):
        return None
    ordered = sorted(before)
    spread = ordered[len(ordered) * 9 // 10] - ordered[len(ordered) // 10]
    # The median of n values spread like a normal distribution has the error 0.49 spread / sqrt(n).
    error = 0.49 * spread * sqrt(1 / len(before) + 1 / len(after))
    fall = median(before) - median(after)
    sentence = f"fell from {median(before):.4g} to {median(after):.4g} {unit}, below {ratio:g} of its rate"
    if fall > max(spread, CERTAIN * error):
        return _Fall(True, f"{sentence} before the move")
    return _Fall(False, f"{sentence}, which was too unsteady to judge (eight tenths of it within {spread:.4g} {unit})")
