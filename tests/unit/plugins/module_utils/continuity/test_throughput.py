"""The number and rate of a rank's steps at the limits of a window, and the detection of a slower rank."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import inf
from typing import Any

import pytest

from plugins.module_utils.continuity.limits import Breach, read_limits
from plugins.module_utils.continuity.lines import Line
from plugins.module_utils.continuity.marked_phases import MarkedPhases
from plugins.module_utils.continuity.move_windows import Timeline
from plugins.module_utils.continuity.pace import Pace, few_steps, images_of_step, least_steps, rates_around
from plugins.module_utils.continuity.step_records import Track
from plugins.module_utils.continuity.verdict import judge_throughput

from .lines import line, seconds, track

ALWAYS = (-inf, inf)


def pace(one: Track, first_step: int = 0, *marks: Line) -> Pace:
    limits = read_limits({"phases": {"eval": 3}})
    return Pace(one, first_step, MarkedPhases([track(*marks)] if marks else [], limits))


def rated(rates: Sequence[Any], step_s: float = 1.0, begin: float = 1.0, **others: Any) -> list[Line]:
    """Return one step with each of these rates, in order."""
    return [line(int(begin) + index, begin + index * step_s, rate=rate, **others) for index, rate in enumerate(rates)]


def test_steps_are_counted_strictly_between_two_moments() -> None:
    one = pace(track(*(line(5 * index, float(index), stride=5) for index in range(5))))
    assert one.steps(*ALWAYS) == 25
    assert one.steps(-inf, 0.5) == 5
    assert one.steps(1.0, 3.0) == 5
    assert one.steps(0.5, 3.5) == 15
    assert one.steps(3.5, 1.5) == 0
    assert pace(track(line(1, 1.0, mark="begin", phase="eval"))).steps(*ALWAYS) == 0


def test_the_warm_up_is_not_counted() -> None:
    assert pace(seconds(*range(10)), 4).steps(*ALWAYS) == 6


def test_steps_are_sorted_by_arrival() -> None:
    swapped = track(line(1, 1.0), line(3, 2.0), line(2, 3.0), line(4, 4.0))
    assert pace(swapped).steps(1.5, 3.5) == 2
    assert pace(swapped).steps(2.5, 3.5) == 1


def test_only_training_steps_with_finite_rates_count() -> None:
    lines = rated([1.0, None, "nan", 2.0, "3", 4.0])
    lines[3] = lines[3]._replace(phase="eval")
    one = pace(track(*lines))
    assert one.rates(*ALWAYS) == [1.0, 3.0, 4.0]
    assert one.rates(1.0, 6.0) == [3.0]


def test_a_stretch_spans_five_steps_and_five_seconds() -> None:
    quick = pace(track(*(line(step, step / 2) for step in range(21))))
    assert quick.seen_rates(*ALWAYS) == [2.0, 2.0]
    slow = pace(track(*(line(step, step * 2.0) for step in range(11))))
    assert slow.seen_rates(*ALWAYS) == [0.5, 0.5]
    assert pace(track(*(line(step, step * 0.99) for step in range(6)))).seen_rates(*ALWAYS) == []
    strided = pace(track(*(line(5 * index, index * 5.0, stride=5) for index in range(3))))
    assert strided.seen_rates(*ALWAYS) == [1.0, 1.0]


def test_stretches_are_completely_between_two_moments() -> None:
    one = pace(seconds(*range(21)))
    assert one.seen_rates(0.0, 20.0) == [1.0] * 4
    assert one.seen_rates(0.5, 19.5) == [1.0] * 2
    assert one.seen_rates(5.0, 10.0) == [1.0]
    assert one.seen_rates(5.0, 5.0) == []


def test_any_other_phase_ends_a_training_stretch() -> None:
    lines = [line(step, float(step)) for step in range(9)]
    lines[4] = lines[4]._replace(phase="eval")
    assert pace(track(*lines)).seen_rates(*ALWAYS) == []
    after = [line(step, 1.5 * step) for step in range(9, 15)]
    assert pace(track(*lines, *after)).seen_rates(13.0, inf) == []
    assert pace(track(*lines[:3], lines[4], *after)).seen_rates(13.0, inf) == [1 / 1.5]


def test_excludes_a_marked_phase_from_its_stretch() -> None:
    marks = [line(6, 6.25, mark="begin", phase="eval"), line(6, 6.5, mark="end", phase="eval")]
    one = pace(track(*(line(step, float(step) + (step > 9) * 5.0) for step in range(16))), 0, *marks)
    assert one.seen_rates(*ALWAYS) == [1.0, 1.0]


def test_images_per_step_are_the_median_rate() -> None:
    assert images_of_step(rated([None, 8.0, 10.0, 12.0], 2.0)) == 20.0
    strided = [line(5 * n, 2.0 * n, rate=10.0) for n in range(3)]
    assert images_of_step(strided) == 4.0
    assert images_of_step(rated([8.0, 10.0])) == 10.0
    assert images_of_step(rated([8.0])) is None
    assert images_of_step(rated([8.0, "inf"])) is images_of_step(rated([8.0, 1e308])) is None
    assert images_of_step([line(2, 1.0), line(1, 3.0, rate=10.0)]) == 20.0
    assert images_of_step(rated([8.0, 10.0], 0.0)) is None
    assert images_of_step([*rated([8.0]), *rated([8.0], begin=2.0, phase="eval"), *rated([8.0], begin=3.0)]) is None


def images(one: Pace, after: float, before: float) -> float | None:
    """Return the images per second between two times."""
    rate = one.seen_rate(after, before)
    return None if rate is None else rate * (one.images or 0.0)


def test_spreads_images_over_the_time_between_steps() -> None:
    one = pace(track(*rated([10.0] * 5)))
    assert images(one, *ALWAYS) == 10.0
    assert images(one, 2.0, 4.0) == 10.0
    assert images(one, 2.25, 2.75) == 10.0
    assert images(one, 4.5, 6.5) == 2.5
    assert images(one, -5.0, 1.5) == 10.0
    assert images(one, -5.0, 1.0) is None
    assert images(one, 3.0, 2.0) is None
    assert images(one, 7.0, 9.0) == 0.0
    assert images(pace(track(line(1, 1.0, mark="begin", phase="eval"))), *ALWAYS) is None
    slow_end = pace(track(*rated([10.0] * 4), line(5, 14.0)))
    assert images(slow_end, 4.0, inf) == 1.0


def test_counts_images_for_each_step_of_a_stride() -> None:
    lines = [line(5 * n, 5.0 * n, stride=5, rate=10.0) for n in range(5)]
    assert images(pace(track(*lines)), 0.0, 20.0) == 10.0
    uneven = [line(n, float(n), rate=10.0) for n in range(5)]
    uneven.append(line(9, 5.0, stride=5))
    assert images(pace(track(*uneven)), 0.0, 4.0) == 10.0
    assert images(pace(track(*uneven)), 4.0, 5.0) == 50.0


def test_lines_of_one_moment_share_the_time_before() -> None:
    lines = rated([10.0] * 4)
    lines[2] = lines[2]._replace(at=2.0)
    assert images(pace(track(*lines)), 1.0, 4.0) == 10.0
    assert images(pace(track(*lines)), 1.0, 2.0) == 20.0


def test_excludes_marked_time_but_counts_the_surrounding_step() -> None:
    marks = [line(3, 3.25, mark="begin", phase="eval"), line(3, 3.75, mark="end", phase="eval")]
    one = pace(track(*rated([10.0] * 5)), 0, *marks)
    assert images(one, 1.0, 5.0) == pytest.approx(40.0 / 3.5)
    assert images(one, 3.0, 4.0) == 20.0
    assert images(one, 3.25, 3.75) is None


MOVE = (40.5, 42.5)


def timeline(*moves: tuple[float, float], deadline: float = 0.0) -> Timeline:
    reported = [{"ranks": [1], "started": started, "completed": completed} for started, completed in moves or (MOVE,)]
    return Timeline(reported, deadline)


def judged(
    lines: Sequence[Line], *moves: tuple[float, float], ratio: float = 0.8, deadline: float = 0.0
) -> tuple[list[Breach], list[str]]:
    found = judge_throughput([pace(track(*lines, rank=3))], timeline(*moves, deadline=deadline), ratio)
    return found.breaches, found.unproven


def slower(sentence: str, at: float = 42.5) -> tuple[list[Breach], list[str]]:
    return [Breach("throughput", 3, None, at, f"rank 3 {sentence} of its rate before the move")], []


def test_a_rank_reporting_a_lower_rate_is_slower() -> None:
    lines = [*rated([100.0] * 40), *rated([50.0] * 40, begin=43.0)]
    assert judged(lines) == slower("fell from 100 to 50 images/s, below 0.8")
    assert judge_throughput([pace(track(*lines))], timeline(), None) == ([], [])
    assert judged(lines, ratio=0.5) == ([], [])


def test_a_rank_observed_to_be_slower_is_slower() -> None:
    result = slower("fell from 1 to 0.5 steps/s on the observer's clock, below 0.8")
    lines = [*rated([100.0] * 60), *rated([100.0] * 60, 2.0, begin=63.0)]
    assert judged(lines, (60.5, 62.5)) == slower("fell from 1 to 0.5 steps/s on the observer's clock, below 0.8", 62.5)
    unsteady = [10.0 + 300 * (index % 2) for index in range(60)]
    assert judged([*rated(unsteady), *rated([20.0] * 60, 2.0, begin=63.0)], (60.5, 62.5))[0] == [
        result[0][0]._replace(at=62.5)
    ]
    both = [*rated([100.0] * 60), *rated([50.0] * 60, 2.0, begin=63.0)]
    assert judged(both, (60.5, 62.5)) == slower("fell from 100 to 50 images/s, below 0.8", 62.5)


def test_ignores_what_the_observer_cannot_measure() -> None:
    """The intervals have any length, but the rank reports its usual rate."""
    chance = random.Random(3)
    uneven, at = [], 0.0
    for step in range(200):
        at += chance.choice((0.2, 3.0)) if step < 100 else 2.4
        uneven.append(line(step, at, rate=100.0))
    begin, end = uneven[99].at + 0.5, uneven[100].at - 0.5
    assert judged(uneven, (begin, end)) == ([], [])


def test_a_rank_with_too_few_rates_is_unproven() -> None:
    enough, few = [*rated([100.0] * 10), *rated([50.0] * 10, begin=43.0)], "throughput: rank 3 reported only"
    assert judged(enough, (10.5, 12.5)) == slower("fell from 100 to 50 images/s, below 0.8", 12.5)
    assert judged(enough[1:], (10.5, 12.5)) == ([], [f"{few} 9 rates before and 10 after a move"])
    assert judged(enough[:-1], (10.5, 12.5)) == ([], [f"{few} 10 rates before and 9 after a move"])


def test_judges_later_moves_and_reports_one_breach() -> None:
    first, second, third = rated([100.0] * 40), rated([99.0] * 40, begin=43.0), rated([50.0] * 40, begin=103.0)
    moves = [MOVE, (100.5, 102.5)]
    assert judged([*first, *second, *third], *moves) == slower("fell from 99 to 50 images/s, below 0.8", 102.5)
    fourth = rated([20.0] * 40, begin=163.0)
    moves.append((160.5, 162.5))
    assert len(judged([*first, *second, *third, *fourth], *moves)[0]) == 1


def test_compares_a_gradual_loss_with_the_original_rate() -> None:
    first, second, third = rated([100.0] * 40), rated([85.0] * 40, begin=43.0), rated([75.0] * 40, begin=103.0)
    moves = [MOVE, (100.5, 102.5)]
    message = "fell from 100 to 75 images/s, below 0.8"
    assert judged([*first, *second, *third], *moves) == slower(message, 102.5)
    assert judged([*first[31:], *second, *third], *moves)[0] == []


def test_a_job_may_regain_its_pace_in_time() -> None:
    lines = [*rated([100.0] * 40), *rated([50.0] * 20, begin=43.0), *rated([100.0] * 10, begin=63.0)]
    assert judged(lines, deadline=20.0) == ([], [])
    assert judged(lines, deadline=25.0) == slower("fell from 100 to 50 images/s, below 0.8")


def test_all_rates_before_or_after_consecutive_moves_count() -> None:
    lines = [*rated([100.0] * 40), *rated([50.0] * 5, begin=43.0), *rated([50.0] * 40, begin=53.0)]
    assert judged(lines, MOVE, (49.5, 52.5)) == slower("fell from 100 to 50 images/s, below 0.8")
    late = [*rated([100.0] * 40), *rated([100.0] * 5, begin=43.0), *rated([50.0] * 40, begin=53.0)]
    assert [breach.at for breach in judged(late, (40.25, 42.75), (49.5, 52.5))[0]] == [42.75]
    steady = [*rated([100.0] * 40), *rated([100.0] * 12, begin=43.0), *rated([50.0] * 40, begin=63.0)]
    assert [breach.at for breach in judged(steady, MOVE, (58.5, 62.5))[0]] == [62.5]


def test_the_last_consecutive_move_uses_all_earlier_rates() -> None:
    steady = [*rated([100.0] * 40), *rated([100.0] * 5, begin=43.0), *rated([100.0] * 40, begin=53.0)]
    assert judged(steady, MOVE, (49.5, 52.5)) == ([], [])


def test_prefers_the_latest_of_equally_certain_falls() -> None:
    lines = [*rated([300.0] * 40), *rated([280.0] * 40, begin=43.0), *rated([90.0] * 40, begin=103.0)]
    assert judged(lines, MOVE, (100.5, 102.5)) == slower("fell from 280 to 90 images/s, below 0.8", 102.5)


@pytest.mark.parametrize(("after", "is_reported"), [(88.5, False), (88.4, True)])
def test_a_fall_must_exceed_the_rates_spread(after: float, is_reported: bool) -> None:
    before = [float(rate) for rate in range(101, 141)]
    random.Random(1).shuffle(before)
    breaches, unproven = judged([*rated(before), *rated([after] * 40, begin=43.0)])
    assert (len(breaches), len(unproven)) == (is_reported, not is_reported)
    sentence = f"fell from 120.5 to {after:g} images/s, below 0.8 of its rate"
    unsteady = "which was too unsteady to judge (eight tenths of it within 32 images/s)"
    assert unproven == ([] if is_reported else [f"throughput: rank 3 {sentence}, {unsteady}"])


@pytest.mark.parametrize(("after", "is_reported"), [(91.5, False), (91.4, True)])
def test_a_fall_in_few_rates_must_exceed_error(after: float, is_reported: bool) -> None:
    before = [100.0 + 2 * index for index in (3, 9, 0, 5, 1, 8, 2, 7, 4, 6)]
    breaches, unproven = judged([*rated(before), *rated([after] * 10, begin=43.0)], (10.5, 12.5), ratio=0.9)
    assert (len(breaches), len(unproven)) == (is_reported, not is_reported)


def test_reports_the_more_certain_of_two_falls() -> None:
    """The rate is within the spread of the rates just before the move, but not of those before all moves."""
    unsteady = [80.0 + 40 * (index % 2) for index in range(40)]
    lines = [*rated([100.0] * 40), *rated(unsteady, begin=43.0), *rated([70.0] * 40, begin=103.0)]
    breaches, unproven = judged(lines, MOVE, (100.5, 102.5))
    assert ([breach.at for breach in breaches], unproven) == ([102.5], [])


def test_reports_fewest_steps_and_median_images_of_ranks() -> None:
    paces = [
        pace(track(*rated([10.0] * 10))),
        pace(track(*rated([20.0] * 9))),
        pace(track(*rated([90.0] * 10))),
        pace(track(*rated([None] * 10))),
    ]
    (around,) = timeline((4.5, 6.5)).around()
    assert least_steps(paces, around[1]) == {"before": 4, "during": 2, "after": 3}
    assert rates_around(paces[:2], around) == {"unit": "images/s", "before": 15.0, "during": 15.0, "after": 15.0}
    assert rates_around([paces[0], *paces[2:]], around) == {
        "unit": "images/s",
        "before": 50.0,
        "during": 50.0,
        "after": 50.0,
    }
    assert least_steps([], around[1]) == {"before": 0, "during": 0, "after": 0}
    assert rates_around([], around) == {"unit": "steps/s", "before": None, "during": None, "after": None}


def test_requires_twenty_steps_on_either_side_of_moves() -> None:
    (group,) = timeline((20.5, 22.5)).groups
    assert list(few_steps([pace(seconds(*range(1, 43), begin=1.0))], group, "move 1")) == []
    assert list(few_steps([pace(seconds(*range(2, 42), begin=2.0, rank=5))], group, "move 1")) == [
        "steps: rank 5 made 19 before move 1, 20 are needed",
        "steps: rank 5 made 19 after move 1, 20 are needed",
    ]
