"""Which custom attributes may go."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.cluster.attributes import plan_attributes

WORKER, PENDING = "dml.vsphere.worker", "dml.vsphere.pending"


@pytest.mark.parametrize(
    ("carriers", "over", "removed"),
    [
        ({}, [], []),
        ({WORKER: []}, [], [WORKER]),
        ({WORKER: ["w1 (vm-1)"]}, [], []),
        ({WORKER: [], PENDING: ["esx01 (host-1)"]}, ["esx01 (host-1)"], [WORKER, PENDING]),
        ({PENDING: ["esx01 (host-1)", "esx02 (host-2)"]}, ["esx01 (host-1)"], []),
        # Two hosts of the same name: only the one whose note is over counts as nothing.
        ({PENDING: ["esx01 (host-1)", "esx01 (host-9)"]}, ["esx01 (host-1)"], []),
        ({WORKER: ["esx01 (host-1)"]}, ["esx01 (host-1)"], []),
    ],
)
def test_removes_attributes_that_no_object_uses(carriers: dict[str, Any], over: list[str], removed: list[str]) -> None:
    plan = plan_attributes(carriers, over)
    assert [change.key for change in plan.changes if change.after is None] == removed
    assert plan.before["notes that are over"] == over


@pytest.mark.parametrize(("many", "names"), [(3, "w1, w2, w3"), (5, "w1, w2, w3 and 2 more")])
def test_names_the_carrier_of_the_other_attributes(many: int, names: str) -> None:
    plan = plan_attributes({WORKER: [f"w{number} (vm-{number})" for number in range(1, many + 1)]}, [])
    assert plan.why == (f"dml.vsphere.worker stays: {names} carry it",)
