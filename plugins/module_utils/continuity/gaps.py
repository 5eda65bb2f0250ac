"""Silences: times without a line from a rank, with their phase and the move at that time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .limits import TRAIN, Breach, Limits
from .lines import Line, neighbours
from .marked_phases import MarkedPhases
from .move_windows import MoveGroup, Timeline
from .step_records import Track

OTHERS = "others"
MOVED_ONLY = "moved_only"


class Gap(NamedTuple):
    """A silence of one rank, which the line of a step ended or which has not ended yet."""

    rank: int
    step: int
    begin: float
    end: float
    seconds: float
    phase: str
    limit: float
    group: MoveGroup | None
    is_joined: bool = False

    def sentence(self) -> str:
        limit = f" (limit {self.limit:g} s)" if self.seconds > self.limit else ""
        if self.is_joined:
            where = f"one after another, until step {self.step} of rank {self.rank}, in phase {self.phase}"
            return f"ranks that did not move at the time were silent for {self.seconds:.3f} s, {where}{limit}"
        where = f"before step {self.step}, in phase {self.phase}"
        return f"rank {self.rank} was silent for {self.seconds:.3f} s {where}{limit}"


class Gaps(NamedTuple):
    """The longest of the measured silences of all ranks."""

    by_group: dict[MoveGroup, Gap]
    by_phase: dict[str, Gap]
    too_long: list[Gap]


class Judge(NamedTuple):
    """The moves, limits and phases against which a silence is judged."""

    timeline: Timeline
    limits: Limits
    ranks: frozenset[int]
    first_step: int
    marked: MarkedPhases

    def source(self, group: MoveGroup) -> str:
        """Return the ranks on which the silence of a move is measured: those that do not move, if there are any."""
        return OTHERS if self.ranks - group.ranks else MOVED_ONLY


def find_gaps(tracks: Iterable[Track], judge: Judge, observed_until: float | None) -> Gaps:
    """Return the longest silences; ``observed_until`` is the time until which the observer listened."""
    by_group: dict[MoveGroup, Gap] = {}
    by_phase: dict[str, Gap] = {}
    too_long = []
    for gap in _measured(tracks, judge, observed_until):
        longest = by_phase.get(gap.phase)
        if longest is None or gap.seconds > longest.seconds:
            by_phase[gap.phase] = gap
        if gap.group is not None:
            longest = by_group.get(gap.group)
            if longest is None or gap.seconds > longest.seconds:
                by_group[gap.group] = gap
        if gap.seconds > gap.limit:
            too_long.append(gap)
    return Gaps(by_group, by_phase, list(_stalls(too_long)))


def gap_breaches(gaps: Gaps, has_moves: bool) -> list[Breach]:
    """Return the silences that are too long, in the window of a move or, if nothing was moved, anywhere."""
    return [
        Breach("gap", gap.rank, gap.step, gap.begin, gap.sentence())
        for gap in gaps.too_long
        if gap.group is not None or not has_moves
    ]


def phase_after(line: Line) -> str:
    """Return the phase of a rank after a line, from this line only."""
    return TRAIN if line.mark == "end" else line.phase


def _measured(tracks: Iterable[Track], judge: Judge, observed_until: float | None) -> Iterator[Gap]:
    """Yield the silences of each rank, then those that are joined across ranks."""
    silences = JoinedSilences(judge.timeline, judge.limits.gap(TRAIN))
    for track in tracks:
        yield from _of_rank(track, judge, observed_until, silences)
    for rank, step, begin, end, allowed in silences.joined():
        phase, limit = _waiting(begin, end, judge)
        if allowed is not None:
            # Other ranks may wait during a phase, but training does not extend a phase with a shorter limit.
            longer = allowed.limit if allowed.limit < judge.limits.gap(TRAIN) else max(allowed.limit, limit)
            phase, limit = allowed.phase, longer
        yield Gap(rank, step, begin, end, end - begin, phase, limit, judge.timeline.owner(begin, end), is_joined=True)


def _of_rank(track: Track, judge: Judge, observed_until: float | None, silences: JoinedSilences) -> Iterator[Gap]:
    for before, after in neighbours(track.lines):
        if before.step + 1 < judge.first_step:
            continue
        waits = before.is_train and after.is_train
        allowed = None if waits else Allowed(*phase_between(before, after, judge.limits))
        yield from _gap(track.rank, after.step, (before.at, after.at), allowed, judge, silences)
    last = track.last
    # Without a stamp, the end is known only on the rank's clock, whose offset from the observer's is unknown.
    if observed_until is not None and track.stamps:
        phase = phase_after(last)
        allowed = None if phase == TRAIN else Allowed(phase, judge.limits.gap(phase))
        yield from _gap(track.rank, last.step + last.stride, (last.at, observed_until), allowed, judge, silences)


def _gap(
    rank: int, step: int, times: tuple[float, float], allowed: Allowed | None, judge: Judge, silences: JoinedSilences
) -> Iterator[Gap]:
    """Yield the longest part of a silence without a move of its rank; ``allowed`` is None between training steps."""
    moving = judge.timeline.moving(*times)
    longest = SilencePart(*times)
    if moving:
        parts = list(_parts(rank, times, moving, judge))
        silences.add(rank, step, parts, allowed)
        longest = max(parts, key=lambda part: part.seconds)
    begin, end, _group = longest
    if end >= begin:
        phase, limit = allowed or _waiting(begin, end, judge)
        yield Gap(rank, step, begin, end, end - begin, phase, limit, judge.timeline.owner(*times))


def _waiting(begin: float, end: float, judge: Judge) -> tuple[str, float]:
    """Return the phase and limit of a silence between two training steps; marked phases of other ranks extend it."""
    shared, phase = judge.marked.within(begin, end)
    return (phase if shared > (end - begin) / 2 else TRAIN), judge.limits.gap(TRAIN) + shared


def _parts(rank: int, times: tuple[float, float], moving: Iterable[MoveGroup], judge: Judge) -> Iterator[SilencePart]:
    """Yield the parts of a silence in which the rank did not move, or all of it if every rank moved."""
    begin, end = times
    for group in moving:
        if rank in group.ranks and judge.source(group) == OTHERS and group.completed > group.started:
            yield SilencePart(begin, group.started, group)
            begin = group.completed
    yield SilencePart(begin, end)


def phase_between(before: Line, after: Line, limits: Limits) -> tuple[str, float]:
    """Return the phase of a rank between two of its lines, and how long it may last."""
    if before.mark == "begin" or after.mark == "end":
        phase = before.phase if before.mark == "begin" else after.phase
        return phase, limits.gap(phase)
    # A phase without marks may have started or ended anywhere between two steps.
    unmarked = {line.phase for line in (before, after) if line.mark is None}
    phases = sorted((unmarked or {TRAIN}) - {TRAIN}) or [TRAIN]
    return phases[0], max(limits.gap(phase) for phase in unmarked or {TRAIN})


def _stalls(gaps: list[Gap]) -> Iterator[Gap]:
    """Yield the longest of several ranks' simultaneous silences, which count as one."""
    stall: Gap | None = None
    end = math.inf
    for gap in sorted(gaps, key=lambda gap: (gap.begin, gap.end)):
        if stall is not None and gap.begin < end and gap.group == stall.group:
            stall = max(stall, gap, key=lambda one: one.seconds)
        else:
            if stall is not None:
                yield stall
            stall = gap
            end = gap.end
        end = max(end, gap.end)
    if stall is not None:
        yield stall


class SilencePart(NamedTuple):
    """The part of a rank's silence between its moves, and the group with which the rank started to move at its end."""

    begin: float
    end: float
    moves_with: MoveGroup | None = None

    @property
    def seconds(self) -> float:
        """Return the length in seconds; negative if the rank wrote while it moved."""
        return self.end - self.begin


class Allowed(NamedTuple):
    """A phase other than training, and how long it may last."""

    phase: str
    limit: float


class Joined(NamedTuple):
    """A silence of several ranks; ``allowed`` is the phase with the longest limit, None if all only trained."""

    rank: int
    step: int
    begin: float
    end: float
    allowed: Allowed | None


class _Piece:
    """A part of a silence, with the earliest start of a joined silence that ends with this part.

    ``trained`` is that start if all parts are between two training steps, ``other`` if they may be any parts.
    """

    __slots__ = ("allowed", "is_continued", "other", "part", "rank", "step", "trained")

    def __init__(self, rank: int, step: int, part: SilencePart, allowed: Allowed | None) -> None:
        self.rank, self.step, self.part, self.allowed = rank, step, part, allowed
        self.is_continued = False
        self.trained = part.begin if allowed is None else math.inf
        self.other = None if allowed is None else (part.begin, allowed)


class JoinedSilences:
    """The silences of all ranks around the starts of moves; ``max_gap_s`` is the limit of a training step."""

    def __init__(self, timeline: Timeline, max_gap_s: float) -> None:
        self._timeline, self._training = timeline, Allowed(TRAIN, max_gap_s)
        self._pieces: list[_Piece] = []
        self._stopped: dict[MoveGroup, list[_Piece]] = {}
        self._around: dict[MoveGroup, list[_Piece]] = {}

    def add(self, rank: int, step: int, parts: Sequence[SilencePart], allowed: Allowed | None) -> None:
        """Add the parts of a rank's silence, which ended before a step."""
        for index, part in enumerate(parts):
            # At the start of a part, its rank wrote a line or, in a later part, ended its move.
            around = [
                group
                for group in self._timeline.moving(part.begin, part.end)
                if group.started > part.begin or (group.started == part.begin and index)
            ]
            if part.seconds < 0 or not (around or part.moves_with):
                continue
            piece = _Piece(rank, step, part, allowed)
            self._pieces.append(piece)
            for group in around:
                self._around.setdefault(group, []).append(piece)
            if part.moves_with:
                self._stopped.setdefault(part.moves_with, []).append(piece)

    def joined(self) -> Iterator[Joined]:
        """Yield the longest silences of several ranks."""
        for group in self._timeline.groups:
            self._continue(self._stopped.get(group, []), self._around.get(group, []))
        for piece in self._pieces:
            begin, end = piece.part[:2]
            if piece.is_continued:
                continue
            if piece.trained < begin:
                yield Joined(piece.rank, piece.step, piece.trained, end, None)
            if piece.other is not None and piece.other[0] < min(begin, piece.trained):
                yield Joined(piece.rank, piece.step, piece.other[0], end, piece.other[1])

    def _continue(self, stopped: Sequence[_Piece], around: Sequence[_Piece]) -> None:
        """Continue the silences of ranks that start to move on the ranks that are silent around that time."""
        if not stopped or not around:
            return
        trained = min(piece.trained for piece in stopped)
        other = min((piece.other for piece in stopped if piece.other is not None), default=None)
        for piece in stopped:
            piece.is_continued = True
        for piece in around:
            own = piece.allowed
            given = [] if own is None or trained == math.inf else [(trained, self._longer(own, self._training))]
            if own is None:
                piece.trained = min(piece.trained, trained)
            if other is not None:
                given.append((other[0], self._longer(other[1], own or self._training)))
            piece.other = min([*given, *([] if piece.other is None else [piece.other])], default=None)

    @staticmethod
    def _longer(one: Allowed, other: Allowed) -> Allowed:
        return max(one, other, key=lambda allowed: allowed.limit)
