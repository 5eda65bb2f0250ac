"""A sweep has a run for each combination, on disjoint groups of nodes, and impossible ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.runs.variations import row, table, variations

COMMAND = ["python", "train.py", "--lr={lr}", "--from", "{resume}"]
NODES = ["w1", "w2", "w3", "w4"]


@pytest.mark.parametrize(
    ("sweep", "size", "reason"),
    [
        ({"batch": [1]}, 1, "training_sweep has batch, and the command has no {batch}"),
        ({"lr": []}, 1, r"'lr' of training_sweep is \[\]"),
        ({"lr": 0.1}, 1, "'lr' of training_sweep is 0.1"),
        ({"resume": [1]}, 1, "'resume' of training_sweep"),
        ({"lr": [1]}, 5, "training_sweep_size is 5, and there are 4 nodes"),
        ({"lr": list(range(1001))}, 1, "1001 combinations"),
    ],
)
def test_an_impossible_sweep_is_refused(sweep: dict[str, Any], size: int, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        variations("s", sweep, COMMAND, NODES, size)


def test_the_table_shows_values_ends_and_metrics() -> None:
    ((first, second),) = variations("s", {"lr": [0.1, 0.01]}, COMMAND, NODES, 0)
    end = {"state": "finished", "ended": 70.2, "steps": 40, "loss": None, "images_per_sec": 159.26}

    lines = table([row(first, {"started": 10.0, "end": end}, {"accuracy": 0.91234}), row(second, {}, {})])

    assert lines == [
        "run  lr    state     steps  images/s  seconds  accuracy (outputs)",
        "s.1  0.1   finished  40     159.3     60       0.9123",
        "s.2  0.01  unknown   -      -         -        -",
    ]
