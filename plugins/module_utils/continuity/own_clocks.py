"""The clocks of the ranks themselves, which are used if no line has the observer's stamp.

They are compared with each other: the ranks train in step, so time that passed on only one clock did not pass.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from .lines import Line, Lines, neighbours
from .move_windows import Timeline
from .step_records import typical_interval

CLOCK_STEP_S = 1.0


class ClockStep(NamedTuple):
    """The clock of a rank was set by a number of seconds, just before a step."""

    rank: int
    step: int
    at: float
    seconds: float


def goes_back(steps: Lines, index: int) -> bool:
    """Return whether the step at an index was made after the next one on every clock, and not because one was set back.

    A clock that was set back stays so, but two steps in the wrong order are between their neighbours.
    """
    fall = steps.t[index] - steps.t[index + 1]
    if fall <= 0:
        return False
    before, after = steps[index], steps[index + 1]
    is_between = (index == 0 or steps[index - 1].t <= after.t) and (
        index + 2 >= len(steps) or before.t <= steps[index + 2].t
    )
    if before.seen is None or after.seen is None:
        return is_between
    seen_fall = before.seen - after.seen
    return seen_fall >= 0 and (is_between or seen_fall > fall / 2)


def _is_near_swap(steps: Lines, index: int) -> bool:
    """Return whether steps in the wrong order are near, which distort the times to both neighbours."""
    near = range(max(0, index - 1), min(index + 2, len(steps) - 1))
    return any(goes_back(steps, other) for other in near)


class OwnClocks:
    """The clocks of the ranks, which are compared if no line has the observer's stamp."""

    def __init__(self, steps: Mapping[int, Lines], timeline: Timeline) -> None:
        self._steps = steps
        self._offsets: dict[int, float] = {}
        self._timeline = timeline

    def offset(self, rank: int) -> float:
        """Return the offset of the observer's clock from a rank's, from its first stamp or its peers' stamps."""
        if rank not in self._offsets:
            self._offsets[rank] = self._offset(rank)
        return self._offsets[rank]

    def _offset(self, rank: int) -> float:
        own = next((line.seen - line.t for line in self._steps[rank] if line.seen is not None), None)
        if own is not None:
            return own
        times = dict(zip(self._steps[rank].step, self._steps[rank].t))
        lines = (line for each in self._steps.values() if each.stamps for line in each)
        offsets = [line.seen - times[line.step] for line in lines if line.seen is not None and line.step in times]
        return median(offsets) if offsets else 0.0

    def clock_steps(self, rank: int) -> Iterator[ClockStep]:
        """Yield where the clock of a rank went back, or went forward by more than that of a peer that did not move."""
        steps, jumped = self._steps[rank], 0.0
        interval = typical_interval(steps.t)
        for index, (before, after) in enumerate(neighbours(steps)):
            went = after.t - before.t
            is_back, is_long = went < 0, went >= max(CLOCK_STEP_S, 3 * interval)
            if not (is_back or is_long) or _is_near_swap(steps, index):
                continue
            peers = dict(self._peers(rank, before.step, after.step))
            if not is_back and self._most_agree(rank, went, peers):
                continue
            expected = min(peers.values(), default=max(went, interval))
            if is_back or went - expected >= CLOCK_STEP_S:
                jumped += went - expected
                yield ClockStep(rank, after.step, after.t - jumped, went - expected)

    def _most_agree(self, rank: int, went: float, peers: Mapping[int, float]) -> bool:
        """Return whether most clocks, one for each host, show the same silence.

        If so, the silence is real. A clock without it belongs to a machine that was stunned, by a move or otherwise.
        """
        alike = {self._host(peer) for peer, took in peers.items() if abs(took - went) < CLOCK_STEP_S}
        others = {self._host(peer) for peer in peers} - alike - {self._host(rank)}
        return len(alike | {self._host(rank)}) > max(1, len(others))

    def _host(self, rank: int) -> str:
        """Return the name of a rank's clock: its host, or the rank itself if its host is unknown."""
        host = self._steps[rank][0].identity.get("host")
        return str(rank) if host is None else f"host {host}"

    def _peers(self, rank: int, before: int, after: int) -> Iterator[tuple[int, float]]:
        """Yield the duration of the steps on each other rank, on the observer's clock or, without a move, its own."""
        for peer, lines in self._steps.items():
            begin, end = _find(lines, before), _find(lines, after)
            if peer == rank or begin is None or end is None:
                continue
            if begin.seen is not None and end.seen is not None:
                if end.seen >= begin.seen:
                    yield peer, end.seen - begin.seen
            elif end.t >= begin.t and not self._moves(peer, begin.t, end.t):
                yield peer, end.t - begin.t

    def _moves(self, rank: int, begin: float, end: float) -> bool:
        """Return whether a rank was moving between two times of its clock: a guest does not notice its stun."""
        offset = self.offset(rank)
        return any(rank in group.ranks for group in self._timeline.moving(begin + offset, end + offset))


def _find(steps: Lines, step: int) -> Line | None:
    index = bisect_left(steps.step, step)
    return steps[index] if index < len(steps) and steps.step[index] == step else None
