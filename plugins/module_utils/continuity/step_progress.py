"""Progress: every step once and in order, a finite loss, and no rank that stopped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .gaps import phase_after, phase_between
from .judged_facts import Move
from .limits import LOSS, TRAIN, Breach, Limits
from .lines import FINITE, Line, neighbours
from .marked_phases import MarkedPhases
from .move_windows import MoveGroup, Timeline, move_name
from .own_clocks import goes_back
from .step_records import Track

ENOUGH_STEPS = 20
# The last read steps of a finished job's ranks may differ by this number.
UNREAD_STEPS = 3
# A rank does not count as stopped while its newest lines may still be on their way to the observer.
ON_THE_WAY_S = 1.0


class Surroundings(NamedTuple):
    """The moves, limits and phases against which a silent rank is judged."""

    timeline: Timeline
    limits: Limits
    marked: MarkedPhases


def step_breaches(track: Track) -> Iterator[Breach]:
    """Yield the lost and repeated steps of a rank and those in the wrong order; neighbours are reported together."""
    steps, repeated = track.steps, track.repeated
    for index, (before, after) in enumerate(neighbours(steps)):
        stride = max(before.stride, after.stride)
        if after.step - before.step > stride:
            lost = _steps_text(before.step + stride, after.step - stride)
            detail = f"rank {track.rank} lost {lost} between steps {before.step} and {after.step}"
            yield Breach("step_lost", track.rank, before.step + stride, after.at, detail)
        elif not repeated and goes_back(steps, index):
            detail = f"rank {track.rank} made step {before.step} after step {after.step}"
            yield Breach("step_back", track.rank, before.step, before.at, detail)
    for first, last in _runs(track):
        detail = f"rank {track.rank} made {_steps_text(first.step, last.step)} again"
        yield Breach("step_repeated", track.rank, first.step, first.at, detail)


def loss_breaches(track: Track) -> Iterator[Breach]:
    """Yield a loss that was finite and, from some step on, is not finite again for enough steps."""
    lost = _lost_loss(track)
    if lost is not None and lost.steps >= ENOUGH_STEPS:
        bad = lost.since
        detail = f"rank {track.rank} has loss {bad.loss} at step {bad.step} and no finite one since"
        yield Breach("loss", track.rank, bad.step, bad.at, detail)


def few_losses(track: Track) -> Iterator[str]:
    """Yield a loss that is not finite at the end, for too few steps to judge whether it recovers (loss scaling)."""
    lost = _lost_loss(track)
    if lost is not None and lost.steps < ENOUGH_STEPS:
        bad, steps = lost
        where = f"at step {bad.step} and {steps - 1} after it" if steps > 1 else f"at its last step, {bad.step}"
        yield f"loss: rank {track.rank} has loss {bad.loss} {where}; {ENOUGH_STEPS} steps are needed"


class _Lost(NamedTuple):
    """The line after which no loss is finite, following a finite one, and the number of those steps."""

    since: Line
    steps: int


def _lost_loss(track: Track) -> _Lost | None:
    if track.last.is_train and track.last.loss == FINITE:
        return None
    bad: Line | None = None
    last: Line | None = None
    for line in reversed(track.losses):
        if not (line.loss and (line.is_train or line.mark == LOSS)):
            continue
        last = last or line
        if line.loss == FINITE:
            return None if bad is None else _Lost(bad, last.step - bad.step + last.stride)
        bad = line
    return None


def late_breaches(track: Track, timeline: Timeline, limits: Limits, marked: MarkedPhases) -> Iterator[Breach]:
    """Yield a breach if a rank continued only after the deadline that follows a move; marked phases do not count."""
    lines = track.lines if timeline.groups else []
    for group in timeline.groups:
        index = bisect_right(track.times, group.completed)
        if not 0 < index < len(lines):
            continue
        before, after = lines[index - 1], lines[index]
        late, shared = after.at - group.completed, marked.within(group.completed, after.at)[0]
        moves_again = timeline.moves_again(group.started, before.at, after.at)
        if not moves_again and late - shared > _deadline(track, phase_between(before, after, limits), limits):
            detail = f"rank {track.rank} resumed {late:.3f} s after the move (deadline {limits.resume_deadline_s:g} s)"
            yield Breach("resumed_late", track.rank, after.step, after.at, detail)


def resumed_after(track: Track, groups: Sequence[MoveGroup]) -> dict[MoveGroup, float | None]:
    """Return the seconds from each move to the next line of a rank; None without a line."""
    times = track.times if groups else ()
    found = [bisect_right(times, group.completed) for group in groups]
    return {
        group: times[index] - group.completed if index < len(times) else None for group, index in zip(groups, found)
    }


def resumed_s(each: Sequence[float | None]) -> float | None:
    """Return the seconds from a move to the first line of the last rank; None if a rank wrote no line."""
    seconds = [one for one in each if one is not None]
    return max(seconds) if seconds and len(seconds) == len(each) else None


def stopped_breaches(
    tracks: Sequence[Track], surroundings: Surroundings, ended: str, observed_until: float | None
) -> Iterator[Breach]:
    """Yield the ranks that stopped writing while others continued, or past the deadline."""
    if not tracks:
        return
    last_steps = {track.rank: track.last_step for track in tracks if track.last_step is not None}
    highest = max(last_steps.values(), default=0)
    received = [track.last.at for track in tracks]
    now = max(received if observed_until is None else [*received, observed_until])
    for track in tracks:
        last = track.last
        behind = highest - last_steps.get(track.rank, highest)
        if ended == "finished":
            stopped = behind > UNREAD_STEPS * last.stride
        else:
            stopped = _has_stopped(track, behind, now, surroundings)
        if stopped:
            others = f"others continued to step {highest}" if behind else "so did all others"
            detail = f"rank {track.rank} stopped at step {last.step}, {now - last.at:.3f} s ago; {others}"
            yield Breach("rank_stopped", track.rank, last.step, last.at, detail)


def _has_stopped(track: Track, behind: int, now: float, surroundings: Surroundings) -> bool:
    timeline, limits, marked = surroundings
    last, moves = track.last, timeline.moving(track.last.at, now)
    if moves and not moves[-1].is_over and track.rank in moves[-1].ranks:
        return False
    if behind >= max(ENOUGH_STEPS, 3 * last.stride) and now - last.at >= ON_THE_WAY_S:
        return True
    if not track.stamps:
        return False  # "now" is another rank's clock, and the two may differ by anything
    phase = phase_after(last)
    deadline = _deadline(track, (phase, limits.gap(phase)), limits)
    if moves:
        return now - moves[-1].completed - marked.within(moves[-1].completed, now)[0] > deadline
    return now - last.at - marked.within(last.at, now)[0] > max(deadline, limits.gap(phase))


def _deadline(track: Track, phase: tuple[str, float], limits: Limits) -> float:
    """Return the resume deadline, longer if the pace of the rank or a marked phase delays its next line."""
    return max(limits.resume_deadline_s, 2 * track.interval, 0.0 if phase[0] == TRAIN else phase[1])


def _runs(track: Track) -> list[tuple[Line, Line]]:
    """Return the first and the last line of each run of repeated steps."""
    runs: list[tuple[Line, Line]] = []
    for line in track.repeated:
        if runs and line.step - runs[-1][1].step <= line.stride:
            runs[-1] = (runs[-1][0], line)
        else:
            runs.append((line, line))
    return runs


def _steps_text(first: int, last: int) -> str:
    return f"step {first}" if first == last else f"steps {first} to {last}"


def silence_in_move(tracks: Sequence[Track], timeline: Timeline, moves: Sequence[Move]) -> str:
    """Return which rank of a dead job fell silent first, if that was in the window of a move; empty otherwise."""
    ends = sorted((track.last.at, track.rank) for track in tracks)
    group = timeline.owner(ends[0][0], ends[0][0]) if ends else None
    if group is None:
        return ""
    is_alone = len(ends) > 1 and ends[1][0] - ends[0][0] > ON_THE_WAY_S
    who = f"rank {ends[0][1]} fell silent first" if is_alone else "the ranks fell silent"
    return f"; {who}, in the window of {' and '.join(move_name(moves, index) for index in group.moves)}"
