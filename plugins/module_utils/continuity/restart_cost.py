# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The cost of restarts, in the words of Google's goodput library (ml-goodput-measurement): goodput, and lost time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .restart_facts import Attempt, Part, RestartCost
from .restart_steps import RankSteps

STOP, DOWN, START = "stop", "down", "start and restore"


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
