# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The losses of the attempts of a run over its steps, each as one curve of few points; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...continuity.restart_facts import Attempt

MOST_POINTS = 128


def curves(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Return for each attempt its name, and the mean loss and the time of groups of its steps on all ranks.

    Times are seconds since the first step of the run.
    """
    made = [attempt for attempt in attempts if attempt.ranks]
    began = min((steps.at(0) for attempt in made for steps in attempt.ranks.values()), default=0.0)
    return [{"name": attempt.name, "points": _points(attempt, began)} for attempt in made]


def _points(attempt: Attempt, began: float) -> list[list[float | None]]:
    first = min(steps.step[0] for steps in attempt.ranks.values())
    last = max(steps.last for steps in attempt.ranks.values())
    width = max(1, math.ceil((last - first + 1) / MOST_POINTS))
    groups: dict[int, list[float]] = {}
    for steps in attempt.ranks.values():
        for index, step in enumerate(steps.step):
            group = groups.setdefault((step - first) // width, [0, 0.0, 0.0, 0])
            if math.isfinite(steps.loss[index]):
                group[0] += 1
                group[1] += steps.loss[index]
            group[2], group[3] = max(group[2], steps.at(index) - began), max(group[3], step)
    points = [groups[place] for place in sorted(groups)]
    return [[int(step), round(at, 3), total / count if count else None] for count, total, at, step in points]
