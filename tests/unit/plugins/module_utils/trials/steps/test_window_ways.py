"""The two ways through a window, before one is taken."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.trials.steps.window_ways import expected_at_once

HOSTS = ["esx1", "esx2", "esx3", "esx4"]
# All places are taken, so that no host could leave while the workers run.
FULL = {"profile": "grid_t4-16c", "free": 0, "used": 4, "hosts": [{"host": one, "free": 0, "used": 1} for one in HOSTS]}
CLUSTER: dict[str, Any] = {
    "hosts": HOSTS,
    "vsan": {"enabled": False},
    "ha": {"enabled": True, "admission_control": True, "failover_hosts": 2},
    "gpu_slots": [FULL],
}


@pytest.mark.parametrize(
    ("requested", "changes", "expected"),
    [
        (None, {}, 1),
        (2, {}, 2),
        (9, {}, 2),
        (9, {"ha": {**CLUSTER["ha"], "enabled": False}}, 3),
        (2, {"vsan": {"enabled": True}}, 1),
    ],
)
def test_taken_places_limit_no_hosts_of_a_restart(
    requested: int | None, changes: dict[str, Any], expected: int
) -> None:
    cluster: Any = {**CLUSTER, **changes}
    assert expected_at_once({"max_out_of_service": requested}, cluster) == expected
