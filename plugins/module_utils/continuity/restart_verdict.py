"""The verdict on a run that was stopped and resumed: docs/continuity.md contains its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from statistics import median

from .limits import LISTED, Breach
from .restart_facts import (
    BROKEN,
    DIED,
    INCONCLUSIVE,
    RESUMED,
    RUNNING,
    STOPPED,
    Attempt,
    Part,
    Restart,
    RestartCost,
    RestartLimits,
    RestartVerdict,
)
from .restart_place import MOST_NAMED, Junction, Place
from .restart_steps import RankSteps

STOP, DOWN, START = "stop", "down", "start and restore"
# Clocks of nodes and of the controller may differ by this much.
CLOCK_SECONDS = 5.0
# The rate after a restart that is reported as slow, as a part of the rate before.
SLOW = 0.9


def judge(attempts: Sequence[Attempt], limits: RestartLimits) -> RestartVerdict:
    """Return ``resumed``, ``broken`` or ``inconclusive`` on the attempts of a run in their order, with all reasons."""
    judged, made = _judged(attempts, limits)
    breaches = [*_run_breaches(attempts, limits), *chain.from_iterable(each.breaches() for each in judged)]
    missing = [*_run_missing(attempts), *chain.from_iterable(each.missing() for each in judged)]
    notes = [*_run_notes(attempts, limits), *chain.from_iterable(each.notes() for each in judged)]
    return RestartVerdict(
        verdict=BROKEN if breaches else INCONCLUSIVE if missing else RESUMED,
        breaches=tuple(breaches[:LISTED]),
        unproven=tuple(missing[:LISTED]),
        notes=tuple(notes[:LISTED]),
        restarts=tuple(each.restart() for each in judged),
        cost=cost_of(made, [each.place.after for each in judged]),
    )


def _judged(attempts: Sequence[Attempt], limits: RestartLimits) -> tuple[list[_Judged], list[Attempt]]:
    """Return the judgement of each restart, and the attempts that made steps, all with the numbers of the first one."""
    given = [attempt for attempt in attempts if attempt.ranks]
    made, judged = given[:1], []
    for attempt in given[1:]:
        judged.append(_Judged(made[-1], attempt, limits, from_zero=_is_from_zero(given)))
        offset = judged[-1].place.offset
        ranks = {rank: steps.shifted(offset) for rank, steps in attempt.ranks.items()} if offset else attempt.ranks
        made.append(replace(attempt, ranks=ranks))
    return judged, made


def _is_from_zero(attempts: Sequence[Attempt]) -> bool:
    """Return whether the program counts its steps from 0."""
    first = attempts[0].ranks.values() if attempts else ()
    return any(steps.step[0] == 0 for steps in first)


def _run_breaches(attempts: Sequence[Attempt], limits: RestartLimits) -> Iterator[Breach]:
    for attempt, following in zip(attempts, attempts[1:]):
        yield from (
            Breach("program", None, None, following.started, sentence)
            for key, sentence in differences(attempt, following)
            if key not in limits.accepted | following.chosen
        )
        if limits.is_planned and attempt.state != STOPPED:
            cause = f"{attempt.name} was not stopped for the restart: {attempt.state or 'its end is unknown'}"
            yield Breach("died", None, None, attempt.ended, _with(cause, attempt.cause))
    for attempt in attempts:
        if len(set(attempt.parameters)) > 1:
            listed = ", ".join(sorted({one[:12] for one in attempt.parameters}))
            sentence = f"the ranks of {attempt.name} ended with different parameters: {listed}"
            yield Breach("parameters", None, None, attempt.ended, sentence)
    if attempts and attempts[-1].state == DIED:
        yield Breach("died", None, None, attempts[-1].ended, _with(f"{attempts[-1].name} died", attempts[-1].cause))


def differences(attempt: Attempt, following: Attempt) -> Iterator[tuple[str, str]]:
    """Yield each thing that two attempts must have in common and have not, with a sentence."""
    for key in sorted({*attempt.program, *following.program}):
        one, other = attempt.program.get(key, ""), following.program.get(key, "")
        if one != other:
            yield key, f"{key}: {one or '-'} in {attempt.name}, {other or '-'} in {following.name}"


def _run_missing(attempts: Sequence[Attempt]) -> Iterator[str]:
    if len(attempts) < 2:
        yield "attempts: the run has only one whose manifest is known"
    for attempt in attempts:
        lacking = [str(rank) for rank in range(attempt.size) if rank not in attempt.ranks]
        if not attempt.ranks and attempt is not attempts[-1] and attempt.state and not attempt.steps:
            continue
        if not attempt.ranks:
            yield f"records: none of {attempt.name}"
        elif lacking:
            yield f"records: none of rank {', '.join(lacking[:MOST_NAMED])} in {attempt.name}"


def _run_notes(attempts: Sequence[Attempt], limits: RestartLimits) -> Iterator[str]:
    for attempt, following in zip(attempts, attempts[1:]):
        for key, sentence in differences(attempt, following):
            if key in limits.accepted | following.chosen:
                yield f"{'accepted' if key in limits.accepted else 'chosen'}: {sentence}"
        if attempt.state == STOPPED and attempt.cause:
            yield f"{attempt.name} was {attempt.cause}"
        if not attempt.ranks and not attempt.steps:
            yield f"{attempt.name} ended before its first step"
    if attempts and attempts[-1].state in ("", RUNNING):
        yield f"{attempts[-1].name} still trains, or was not followed to its end"


class _Judged:
    """The judgement of one restart."""

    def __init__(self, before: Attempt, after: Attempt, limits: RestartLimits, *, from_zero: bool) -> None:
        self._before, self._after, self._limits = before, after, limits
        self._junction = Junction(before, after, limits, from_zero=from_zero)
        self.place = self._junction.place()
        self.parts = parts_of(before, after)
        self._losses = self._junction.losses(self.place.offset)

    def breaches(self) -> Iterator[Breach]:
        yield from self.place.breaches
        yield from self._checkpoint_breaches()
        yield from self._step_breaches()
        if self.place.breaches or self.place.after is None:
            return
        if self._junction.begins_again(self.place):
            sentence = f"the losses of {self._after.name} are those of the first steps of {self._before.name}"
            yield Breach("start", None, self._junction.first[0], None, sentence)
        elif self._losses.has_diverged and self._before.size == self._after.size:
            # Another number of ranks makes other batches.
            sentence = (
                f"the first step of {self._after.name} has the loss that it had and the next ones differ by up to "
                f"{self._losses.largest:.2g}: the state of the optimizer was lost"
            )
            yield Breach("optimizer", None, self._junction.first[0], None, sentence)

    def _checkpoint_breaches(self) -> Iterator[Breach]:
        given = self._after.checkpoint
        if given is None:
            return
        at, step = self._after.started, given.step
        if given.fault:
            yield Breach("checkpoint", None, step, at, f"the checkpoint {given.path}: {given.fault}")
        if given.newer:
            sentence = f"{self._after.name} was given {given.path}, older than {', '.join(given.newer)}"
            yield Breach("older", None, step, at, sentence)
        if given.has_optimizer is False:
            sentence = f"the checkpoint {given.path} has no state of the optimizer"
            yield Breach("optimizer", None, step, at, sentence)

    def _step_breaches(self) -> Iterator[Breach]:
        after = self._after
        for rank, steps in after.ranks.items():
            for first, last in list(steps.holes())[:1]:
                sentence = f"rank {rank} skipped steps {first} to {last} in {after.name}"
                yield Breach("skipped", rank, first, None, sentence)
            if steps.repeated:
                sentence = f"rank {rank} made step {steps.repeated[0]} twice in {after.name}"
                yield Breach("repeated", rank, steps.repeated[0], None, sentence)
        late = self._late(is_live=True)
        if late:
            yield Breach("overlap", None, None, after.started, late)

    def _late(self, *, is_live: bool) -> str:
        """Return a sentence about steps after the start of the next attempt; without the observer's clock, no proof."""
        ranks = [one for one in self._before.ranks.values() if one.is_live is is_live]
        seconds = max((one.at(-1) - (self._after.started or one.at(-1)) for one in ranks), default=0.0)
        sentence = f"{self._before.name} made steps until {seconds:.0f} s after the start of {self._after.name}"
        return sentence if seconds > CLOCK_SECONDS else ""

    def missing(self) -> Iterator[str]:
        yield from self.place.missing
        if self._after.checkpoint is None:
            yield f"checkpoint: the manifest of {self._after.name} does not have the one with which it started"
        late = self._late(is_live=False)
        if late:
            yield f"clocks: {late}, according to the clocks of its ranks"
        if self.place.after is None:
            return
        short = [f"{rank} at {one.last}" for rank, one in self._before.ranks.items() if one.last < self.place.after]
        if short:
            ends = f"end before step {self.place.after}, after which {self._after.name} went on"
            yield f"records: those of {self._before.name} {ends}: rank {', '.join(short[:MOST_NAMED])}"

    def notes(self) -> Iterator[str]:
        yield from self.place.notes
        given = self._after.checkpoint
        if given is not None and given.torn:
            yield f"torn, so an earlier checkpoint was used: {', '.join(given.torn)}"
        if self.place.breaches:
            return
        outside = self._junction.outside(self.place)
        if outside:
            yield outside
        if not self.parts:
            yield f"clocks: those of {self._before.name} and {self._after.name} contradict each other"
        pace = [each.interval() for each in (self._before.ranks.get(0), self._after.ranks.get(0)) if each]
        if len(pace) > 1 and pace[0] and pace[1] and pace[0] / pace[1] < SLOW:
            yield f"slower: {self._after.name} needs {pace[1]:.3g} s for a step, {self._before.name} {pace[0]:.3g} s"

    def restart(self) -> Restart:
        before, after, place = self._before, self._after, self.place
        last = self._junction.last
        return Restart(
            before=before.name,
            after=after.name,
            checkpoint=after.checkpoint.path if after.checkpoint else "",
            checkpoint_step=self._junction.checkpoint_step,
            last_step=last,
            first_step=None if place.after is None else place.after + 1,
            repeated_steps=0 if place.after is None else max(0, last - place.after),
            losses=self._losses_text(place, last),
            parts=self.parts,
            save_s=save_s(before),
            repeated_s=None if place.after is None else repeated_s(before, place.after),
            waited_s=before.waited_s,
        )

    def _losses_text(self, place: Place, last: int) -> str:
        """Return how the losses of repeated steps compare."""
        found, tolerance = self._losses, self._limits.loss_tolerance
        if place.after is None or last <= place.after:
            return "no step was repeated"
        if not found.compared:
            return "not comparable: the records of repeated steps have no losses"
        if found.differing:
            share = f"{found.differing} of {found.compared}"
            return f"not comparable: {share} losses of repeated steps differ by up to {found.largest:.2g}"
        return f"equal within {tolerance:g}: {found.compared} losses of repeated steps"


def _with(sentence: str, cause: str) -> str:
    return f"{sentence}: {cause}" if cause else sentence


def parts_of(before: Attempt, after: Attempt) -> tuple[Part, ...]:
    """Return the time without a step between two attempts by its parts; none if the clocks contradict each other."""
    last, first = _last_at(before), _first_at(after)
    ended, started = before.ended, after.started
    if ended is None or started is None:
        return (Part(DOWN, first - last),) if first >= last else ()
    down = before.down or (Part(DOWN, started - ended),)
    parts = (Part(STOP, ended - last), *down, Part(START, first - started))
    # The clocks of nodes and of the controller may differ, of which a part of less than no time is a sign.
    if min(part.seconds for part in parts) < 0:
        return (Part(DOWN, first - last),) if first >= last else ()
    return parts


def repeated_s(before: Attempt, after_step: int) -> float | None:
    """Return the time that the steps after a step took the first time; None if no rank has records of it."""
    return _median([_seconds(steps, after_step) for steps in before.ranks.values()])


def save_s(before: Attempt) -> float | None:
    """Return the time of the last checkpoint that the records mark; None without one."""
    saved = [steps.saved[-1] for steps in before.ranks.values() if steps.saved]
    return max((one.end - one.begin for one in saved), default=None)


def cost_of(attempts: Sequence[Attempt], after_steps: Sequence[int | None]) -> RestartCost | None:
    """Return the cost of the restarts of a run; None if the place of one is unknown, or no time passed."""
    places = [step for step in after_steps if step is not None]
    if len(attempts) < 2 or len(places) < len(after_steps):
        return None
    lifetime = max(_last_at(attempts[-1]) - _first_at(attempts[0]), 0.0)
    repeated = [repeated_s(before, step) or 0.0 for before, step in zip(attempts, places)]
    lasted = [_last_at(attempt) - _first_at(attempt) for attempt in attempts]
    saved = [_saved_s(attempt) for attempt in attempts]
    productive = max(sum(lasted) - sum(repeated) - sum(saved), 0.0)
    if not lifetime:
        return None
    down = [max(0.0, _first_at(after) - _last_at(before)) for before, after in zip(attempts, attempts[1:])]
    steps = [max(0, max(one.last for one in before.ranks.values()) - step) for before, step in zip(attempts, places)]
    return RestartCost(
        lifetime_s=lifetime,
        productive_s=min(productive, lifetime),
        goodput=min(productive / lifetime, 1.0),
        repeated_steps=sum(steps),
        repeated_s=sum(repeated),
        down_s=sum(down),
        save_s=sum(saved) if any(saved) else None,
        rank_s=(sum(repeated) + sum(down)) * max(attempt.size for attempt in attempts),
    )


def _seconds(steps: RankSteps, after_step: int) -> float | None:
    """Return the time of a rank from a step to its last one."""
    index = steps.index_up_to(after_step)
    if index >= 0:
        return max(0.0, steps.t[-1] - steps.t[index])
    interval = steps.interval()
    return None if interval is None else max(0.0, steps.t[-1] - steps.t[0] + interval)


def _saved_s(attempt: Attempt) -> float:
    """Return the time of all marked checkpoints, which usually one rank writes while the others wait."""
    return max((sum(one.end - one.begin for one in steps.saved) for steps in attempt.ranks.values()), default=0.0)


def _last_at(attempt: Attempt) -> float:
    return median(steps.at(-1) for steps in attempt.ranks.values())


def _first_at(attempt: Attempt) -> float:
    return median(steps.at(0) for steps in attempt.ranks.values())


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
