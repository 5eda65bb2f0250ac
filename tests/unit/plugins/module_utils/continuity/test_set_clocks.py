"""The settings of the clock of a rank, if the observer stamped all its lines."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.continuity.clock import tracks_of
from plugins.module_utils.continuity.lines import Line
from plugins.module_utils.continuity.move_windows import Timeline

from .lines import columns_of, line


def clock_steps(lines: list[Line]) -> list[tuple[int, float, float]]:
    """Return each reported clock step: the step, the moment, and the seconds."""
    return [(found.step, found.at, found.seconds) for found in tracks_of({0: columns_of(lines)}, Timeline((), 0.0))[1]]


def by_own_clock(times: Sequence[float], seen: Sequence[float]) -> list[Line]:
    return [line(step, at, t=t) for step, (t, at) in enumerate(zip(times, seen, strict=True))]


def stamped(offsets: Sequence[float], interval: float = 1.0) -> list[Line]:
    """Return steps that arrive at regular times; the offset is between the clocks of rank and observer."""
    seen = [1000.0 + index * interval for index in range(len(offsets))]
    return by_own_clock([at - offset for at, offset in zip(seen, offsets, strict=True)], seen)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([0] * 5 + [60] * 5, [(5, -60.0)]),
        ([0] * 5 + [-60] * 5, [(5, 60.0)]),
        ([0] * 4 + [60] * 20, []),
        ([0] * 4 + [-60] * 20, []),
        ([0] * 20 + [60] * 4, []),
        ([0] * 20 + [-60] * 4, []),
        ([0] * 9 + [1] * 9, []),
        ([0] * 9 + [-1] * 9, []),
        ([0] * 9 + [1.25] * 9, [(9, -1.25)]),
        ([0] * 9 + [-1.25] * 9, [(9, 1.25)]),
        ([0] * 9 + [0.5] + [1.5] * 9, [(10, -1.5)]),
        ([0] * 10 + list(range(1, 12)), []),
        ([0, 0, 5] + [0] * 9 + [60] * 9, [(12, -60.0)]),
        ([0] * 9 + [60] * 4 + [120] * 9, [(9, -60.0)]),
        ([0] * 9 + [5] + [0] * 9, []),
    ],
)
def test_a_clock_step_needs_enough_stamped_lines(offsets: list[float], expected: list[Any]) -> None:
    assert [(step, seconds) for step, _at, seconds in clock_steps(stamped(offsets))] == expected


def test_repeated_steps_show_no_clock_step() -> None:
    once = stamped([0.0] * 9 + [60.0] * 9)
    assert [step for step, _at, _by in clock_steps(once)] == [9]
    assert clock_steps([*once[:4], line(3, 2000.0, t=1940.0), *once[4:]]) == []


def test_lines_that_came_all_at_once_settle_nothing() -> None:
    def at_once(span: float) -> list[Line]:
        seen = [*(1000.0 + index for index in range(9)), *(1060.0 + span * index / 4 for index in range(5))]
        return by_own_clock([at - 60.0 * (index >= 9) for index, at in enumerate(seen)], seen)

    assert [(step, at) for step, at, _by in clock_steps(at_once(1.0))] == [(9, 1060.0)]
    assert clock_steps(at_once(0.75)) == []
    assert clock_steps(at_once(0.0)) == []
    before = [*(1000.0 + index / 4 for index in range(5)), *(1010.0 + index for index in range(9))]
    assert len(clock_steps(by_own_clock([at - 60.0 * (index >= 5) for index, at in enumerate(before)], before))) == 1
    before[:5] = [1000.0] * 5
    assert clock_steps(by_own_clock([at - 60.0 * (index >= 5) for index, at in enumerate(before)], before)) == []


def plainly(lines: list[Line]) -> list[tuple[int, float]]:
    """Return the clock steps of stamped lines, from the least offsets of ten minutes or twenty lines on each side."""
    offsets = [each.at - each.t for each in lines]
    times = list(accumulate((each.at for each in lines), max))

    def settled(some: list[Line]) -> bool:
        return len(some) >= 5 and abs(some[-1].at - some[0].at) >= 1.0

    begin, found = 0, []
    for index in range(1, len(lines)):
        jump = abs(offsets[index] - offsets[index - 1])
        if jump >= 1.0 and settled(lines[begin:index]) and settled(lines[index:]):
            near = range(begin, index)
            before = min(offsets[n] for n in near if times[index - 1] - times[n] <= 600 or index - n <= 20)
            rest = range(index, len(lines))
            after = min(offsets[n] for n in rest if times[n] - times[index] <= 600 or n - index < 20)
            if (after > before + 1.0 or offsets[index] < before - 1.0) and jump > abs(after - before) / 2:
                begin = index
                found.append((lines[index].step, before - after))
    return found


@given(st.integers(0, 10**9))
def test_the_fast_search_agrees_with_a_plain_one(seed: int) -> None:
    chance = random.Random(seed)
    interval, drift, number = (
        chance.choice((1, 10, 30, 50, 100)),
        chance.choice((0, 0.25, -0.25)),
        chance.randint(12, 90),
    )
    sets = {chance.randrange(number): chance.choice((-9, -4, 3, 8)) for _set in range(chance.randint(1, 4))}
    offsets = [index * drift + sum(by for at, by in sets.items() if at <= index) for index in range(number)]
    late = [offset + (chance.choice((0.5, 2, 7)) if chance.random() < 0.1 else 0) for offset in offsets]
    lines = stamped(late, interval)
    assert [(step, seconds) for step, _at, seconds in clock_steps(lines)] == plainly(lines)
