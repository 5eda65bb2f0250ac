"""A task shows few of its percentages."""

from __future__ import annotations

import pytest

from plugins.module_utils.vsphere.tasks import by_quarters


@pytest.mark.parametrize(
    ("percents", "expected"),
    [(range(101), [25, 50, 75]), ([0, 10, 24, 100], []), ([0, 60, 61, 90, 100], [60, 90]), ([50, 30, 50], [50])],
)
def test_reports_each_quarter_once(percents: list[int], expected: list[int]) -> None:
    seen: list[int] = []
    progress = by_quarters(seen.append)
    for percent in percents:
        progress("worker01", percent)
    assert seen == expected
