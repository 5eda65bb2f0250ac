"""The planned changes, the number of boots that they need, and their diff."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from plugins.module_utils.plan import REBOOT, Change, Plan, diff


@pytest.mark.parametrize(
    ("needs", "later", "boots"), [((), (), 0), ((REBOOT,), (), 1), ((), ("mtu",), 1), ((REBOOT,), ("mtu",), 2)]
)
def test_the_boots_of_a_plan_are_counted(needs: Sequence[str], later: Sequence[str], boots: int) -> None:
    assert Plan({}, {}, needs=frozenset(needs), later=frozenset(later)).reboots == boots


def test_a_diff_has_the_shape_that_ansible_shows() -> None:
    assert diff("esx1: settings", [Change("mtu", 1500, 9000)]) == {
        "before_header": "esx1: settings",
        "after_header": "esx1: settings",
        "before": {"mtu": 1500},
        "after": {"mtu": 9000},
    }
