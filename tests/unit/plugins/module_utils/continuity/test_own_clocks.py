"""Clocks at their limits: steps that went back, settings of a clock, and the time of each line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from plugins.module_utils.continuity.clock import tracks_of
from plugins.module_utils.continuity.lines import Line
from plugins.module_utils.continuity.move_windows import Timeline
from plugins.module_utils.continuity.own_clocks import goes_back
from plugins.module_utils.continuity.step_records import Track

from .lines import columns_of, line


def own(times: Sequence[float], seen: Sequence[float | None] | None = None, first: int = 0) -> list[Line]:
    """Return steps with the time on the clock of their rank, stamped or not."""
    stamps = seen or [None] * len(times)
    return [
        line(first + index, t if stamp is None else stamp, t=t, seen=stamp)
        for index, (t, stamp) in enumerate(zip(times, stamps, strict=True))
    ]


def read(*ranks: list[Line], moves: Sequence[dict[str, Any]] = ()) -> tuple[list[Track], list[tuple[Any, ...]]]:
    tracks, found = tracks_of({rank: columns_of(lines) for rank, lines in enumerate(ranks)}, Timeline(moves, 0.0))
    return tracks, [tuple(one) for one in found]


def clock_steps(*ranks: list[Line], moves: Sequence[dict[str, Any]] = ()) -> list[tuple[Any, ...]]:
    return read(*ranks, moves=moves)[1]


def places(one: Track) -> list[float]:
    return [each.at for each in one.lines]


@pytest.mark.parametrize(
    ("times", "index", "is_back"),
    [
        ([1, 2], 0, False),
        ([1, 1], 0, False),
        ([2, 1.5], 0, True),
        ([0, 2, 1], 1, True),
        ([1, 2, 1], 1, True),
        ([1.5, 2, 1], 1, False),
        ([5, 0, 2, 1], 2, True),
        ([2, 1, 3], 0, True),
        ([2, 1, 2], 0, True),
        ([2, 1, 1.5], 0, False),
        ([2, 1, 1.5, 9], 0, False),
        ([0, 2, 1, 1.5], 1, False),
        ([1.5, 2, 1, 3], 1, False),
    ],
)
def test_places_unordered_unstamped_steps_between_their_neighbours(
    times: list[float], index: int, is_back: bool
) -> None:
    assert goes_back(columns_of(own(times)), index) is is_back


SET_BACK, SWAPPED = [0, 1, 2, 0, 1], [0, 1, 3, 2, 4]


@pytest.mark.parametrize(
    ("times", "before", "after", "is_back"),
    [
        (SWAPPED, 12.0, 13.0, False),
        (SWAPPED, 12.0, 12.0, True),
        (SWAPPED, 12.1, 12.0, True),
        (SWAPPED, None, 12.0, True),
        (SWAPPED, 12.0, None, True),
        (SET_BACK, 12.0, 13.0, False),
        (SET_BACK, 12.0, 12.0, False),
        (SET_BACK, 12.75, 12.0, False),
        (SET_BACK, 13.0, 12.0, False),
        (SET_BACK, 13.5, 12.0, True),
        (SET_BACK, None, 12.0, False),
        (SET_BACK, 12.0, None, False),
    ],
)
def test_the_observer_must_have_seen_a_swap_too(
    times: list[float], before: float | None, after: float | None, is_back: bool
) -> None:
    assert goes_back(columns_of(own(times, [9.0, 10.0, before, after, 15.0])), 2) is is_back


def test_steps_out_of_order_are_not_clock_steps() -> None:
    peer = own(range(8))
    for order in ([1, 0, 2, 3, 4, 5, 6, 7], [0, 1, 2, 4, 3, 5, 6, 7], [0, 1, 2, 3, 4, 5, 7, 6]):
        for stretch in (1.0, 4.0):
            assert clock_steps(own([stretch * place for place in order]), own([stretch * t.t for t in peer])) == []


@pytest.mark.parametrize(
    ("times", "step"),
    [
        ([0, 1, 62, 64, 63, 65, 66, 67], 2),
        ([0, 2, 1, 3, 64, 65, 66, 67], 4),
        ([0, 61, 62, 63, 64, 65, 67, 66], 1),
        ([1, 0, 2, 3, 4, 5, 6, 67], 7),
    ],
)
def test_reports_a_clock_step_soon_after_a_swap(times: list[float], step: int) -> None:
    reported = [(found[1], found[3]) for found in clock_steps(own(times), own(range(8)))]
    assert reported == [(step, 60.0)]


def spaced(interval: float, jump: float, at: int = 4) -> list[Line]:
    return own([index * interval + (index >= at) * jump for index in range(9)])


@pytest.mark.parametrize(
    ("interval", "jump", "is_reported"),
    [
        (1.0, 2.0, True),
        (1.0, 1.75, False),
        (1.0, 2.5, True),
        (0.25, 1.0, True),
        (0.25, 0.875, False),
        (2.0, 3.0, False),
        (2.0, 4.0, True),
        (1.0, -2.5, True),
        (1.0, -0.5, False),
        (1.0, -1.0, False),
    ],
)
def test_an_unstamped_clock_step_needs_a_minimum_size(interval: float, jump: float, is_reported: bool) -> None:
    step = (0, 4, 4 * interval, jump)
    assert clock_steps(spaced(interval, jump), spaced(interval, 0.0)) == [step] * is_reported


def test_without_peers_only_backward_clock_steps_are_detected() -> None:
    assert clock_steps(own([0, 1, 2, 60, 61])) == []
    assert clock_steps(own([0, 1, 2, -60, -59])) == [(0, 3, 3.0, -63.0)]


def test_each_clock_step_is_independent_of_earlier_ones() -> None:
    tracks, found = read(own([0, 1, 62, 63, 94, 95, 6, 7]), own(range(8)))
    assert found == [(0, 2, 2.0, 60.0), (0, 4, 4.0, 30.0), (0, 6, 6.0, -90.0)]
    assert places(tracks[0]) == [float(second) for second in range(8)]


def test_the_fastest_peer_bounds_the_duration_of_steps() -> None:
    set_too = own([0, 1, 2, 53, 54])
    assert clock_steps(own([0, 1, 2, 63, 64]), set_too, own(range(5))) == [(0, 3, 3.0, 60.0), (1, 3, 3.0, 50.0)]


def on(host: str, lines: list[Line]) -> list[Line]:
    return [each._replace(identity={"host": host}) for each in lines]


def test_a_silence_on_most_clocks_is_real() -> None:
    stalled, stunned = own([0, 1, 2, 63, 64]), own(range(5))
    assert clock_steps(stalled, stalled, stunned) == []
    assert clock_steps(stalled, own([0, 1, 2, 63.5, 64.5]), stunned) == []
    assert clock_steps(stalled, stunned) == [(0, 3, 3.0, 60.0)]
    assert len(clock_steps(stalled, stalled, stunned, stunned)) == 2
    both = on("w0", stalled)
    assert len(clock_steps(both, both, stunned)) == 2, "two ranks of one host share its clock"
    assert clock_steps(both, both, on("w1", stalled), on("w2", stunned)) == []


def test_ignores_peers_without_the_two_steps() -> None:
    assert clock_steps(own([0, 1, 2, 63, 64]), own([3, 4], first=3), own([0, 1]), own(range(5)))[0] == (0, 3, 3.0, 60.0)
    assert clock_steps(own([0, 1, 2, 63, 64]), own([3, 4], first=3), own([0, 1, 2])) == []


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        (own([0, 1, 2, 3, 4], [100, 101, 102, 132, 133]), []),
        (own([0, 1, 2, 32, 33], [100, 101, 102, 103, 104]), [29.0]),
        (own([0, 1, 2, 32, 33], [100, 101, 102, 102, 103]), [30.0]),
        (own([0, 1, 2, 3, 4], [100, 101, 102, 101.5, 104]), []),
        (own([0, 1, 2, 3, 4], [100, 101, 102, None, 104]), [29.0]),
        (own([0, 1, 2, 3, 4], [100, 101, None, 103, 104]), [29.0]),
        (own([0, 1, 2, 2, 3]), [30.0]),
        (own([0, 1, 2, 1.5, 4]), []),
    ],
)
def test_a_peer_counts_by_observer_clock_or_own(peer: list[Line], expected: list[float]) -> None:
    found = clock_steps(own([0, 1, 2, 32, 33]), peer)
    assert [step[3] for step in found if step[0] == 0] == expected


def test_a_peer_that_moves_meanwhile_is_ignored() -> None:
    peer = own([1000 + second for second in range(9)], [0.0, *[None] * 8])
    move = {"ranks": [1], "started": 3.25, "completed": 3.75}
    waiting = own([0, 1, 2, 3, 34, 35, 36, 37, 38])
    assert clock_steps(waiting, peer, moves=[move]) == []
    reported = [(0, 4, 4.0, 30.0)]
    assert clock_steps(waiting, peer, moves=[{**move, "ranks": [0]}]) == reported
    assert clock_steps(waiting, peer, moves=[{**move, "started": 5.0, "completed": 6.0}]) == reported
    assert clock_steps(waiting, peer, moves=[{**move, "started": 1.0, "completed": 2.0}]) == reported


def test_places_unstamped_lines_by_own_or_peer_clock() -> None:
    (alone,), _found = read(own([5.0, 6.0, 7.0]))
    assert places(alone) == [5.0, 6.0, 7.0]
    stamped = own([0, 1, 2, 3], [100.0, 101.5, 102.0, 103.0])
    (_peer, other), _found = read(stamped, own([1001, 1002, 1003], first=1))
    assert places(other) == [101.0, 102.0, 103.0]


def test_places_an_unstamped_line_before_the_next_stamp() -> None:
    (one,), found = read(own([0, 1, 1.75, 2, 3], [100.0, None, None, 150.0, None]))
    assert places(one) == [100.0, 149.0, 149.75, 150.0, 151.0]
    assert found == []
    (early,), _found = read(own([0, 1, 2], [100.0, None, 102.0]))
    assert places(early) == [100.0, 101.0, 102.0]
    (set_back,), _found = read(own([0, 70, 5], [100.0, None, 180.0]))
    assert places(set_back) == [100.0, 180.0, 180.0]
    (first,), _found = read(own([0, 1, 2], [None, None, 102.0]))
    assert places(first) == [100.0, 101.0, 102.0]


@pytest.mark.parametrize("by", [-3600.0, -60.0, 60.0])
def test_stamps_correct_a_partly_stamped_clock(by: float) -> None:
    times = [0, 1, 2 + by, 3 + by, 4 + by]
    (one,), found = read(own(times, [100.0, None, None, 103.0, None]))
    assert found == []
    assert places(one)[-2:] == [103.0, 104.0]


@pytest.mark.parametrize("by", [-3600.0, -60.0])
def test_an_unstamped_line_does_not_date_earlier_lines(by: float) -> None:
    (one,), _found = read(own([0, 1, 2, 33 + by], [100.0, 101.0, 132.0, None]))
    assert places(one) == [100.0, 101.0, 132.0, 132.0]
    (late,), _found = read(own([0, 1, 2, 3 + by], [100.0, 151.0, 102.0, None]))
    assert places(late) == [100.0, 102.0, 102.0, 102.0]


def test_the_next_line_dates_a_late_one() -> None:
    (one,), _found = read(own([0, 1, 2, 3], [100.0, 130.0, 102.0, 103.0]))
    assert places(one) == [100.0, 102.0, 102.0, 103.0]


def test_repeated_steps_have_the_time_of_their_repetition() -> None:
    steps = own([0, 1, 2], [100.0, 101.0, 102.0])
    again = own([10, 11, 12], [110.0, 111.0, 112.0], first=1)
    (one,), found = read([steps[0], steps[1], again[0], steps[2], again[1], again[2]])
    assert [(each.step, each.at) for each in one.lines] == [
        (0, 100.0), (1, 101.0), (2, 102.0), (1, 110.0), (2, 111.0), (3, 112.0),
    ]  # fmt: skip
    assert [each.step for each in one.steps] == [0, 1, 2, 3]
    assert [each.at for each in one.repeated] == [110.0, 111.0]
    assert (list(one.times), one.interval, found) == ([100.0, 101.0, 102.0, 110.0, 111.0, 112.0], 1.0, [])


def test_repeated_unstamped_steps_show_no_clock_step() -> None:
    steps, again = own([0, 1, 2, 3]), own([-70, -69, -68], first=1)
    lines = sorted([*steps, *again], key=lambda each: each.step)
    assert clock_steps(lines, own(range(4))) == []


def test_keeps_the_order_in_which_steps_were_repeated() -> None:
    steps, again = own([1, 2], [101.0, None]), own([10, 11], [50.0, None])
    (one,), _found = read([steps[0], again[0], steps[1], again[1]])
    assert sorted(places(one)) == [50.0, 51.0, 101.0, 102.0]
