# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The progress of a task in few words: each quarter once, as a server may tell every percent."""

from __future__ import annotations

from collections.abc import Callable

STEP = 25


class Quarters:
    """Passes on the first percentage of each quarter, but not the start and the end, of which others tell."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show, self._told = show, 0

    def __call__(self, _target: str, percent: int) -> None:
        quarter = percent // STEP
        if self._told < quarter < 100 // STEP:
            self._told = quarter
            self._show(percent)
