"""A sweep has a run for each combination, on disjoint groups of nodes, and impossible ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.runs.variations import row, table, variations

COMMAND = ["python", "train.py", "--lr={lr}", "--from", "{resume}"]
NODES = ["w1", "w2", "w3", "w4"]


def test_each_combination_runs_on_a_group_of_nodes() -> None:
    first, second = variations("s", {"lr": [0.1, 0.01, 1]}, COMMAND, NODES, 2)

    assert [(each.name, each.values, each.nodes) for each in first] == [
        ("s.1", {"lr": "0.1"}, ["w1", "w2"]),
        ("s.3", {"lr": "1"}, ["w1", "w2"]),
    ]
    assert [(each.name, each.nodes) for each in second] == [("s.2", ["w3", "w4"])]
    assert second[0].command == ["python", "train.py", "--lr=0.01", "--from", "{resume}"]
    (all_nodes,) = variations("s", {"lr": [1], "b": [2, 3]}, [*COMMAND, "{b}"], NODES, 0)
    assert [each.values for each in all_nodes] == [{"lr": "1", "b": "2"}, {"lr": "1", "b": "3"}]


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


def test_the_table_has_steps_per_second_without_images() -> None:
    ((first, _second),) = variations("s", {"lr": [0.1, 0.01]}, COMMAND, NODES, 0)

    made = row(first, {"end": {"state": "finished", "steps": 60, "steps_per_sec": 11.704}}, {})

    assert (made["images/s"], made["steps/s"]) == (None, 11.7)


def test_the_table_shows_values_ends_and_metrics() -> None:
    ((first, second),) = variations("s", {"lr": [0.1, 0.01]}, COMMAND, NODES, 0)
    end = {"state": "finished", "ended": 70.2, "steps": 40, "loss": None, "images_per_sec": 159.26}

    lines = table([row(first, {"started": 10.0, "end": end}, {"accuracy": 0.91234}), row(second, {}, {})])

    assert lines == [
        "run  lr    state     steps  images/s  seconds  accuracy (outputs)",
        "s.1  0.1   finished  40     159.3     60       0.9123",
        "s.2  0.01  unknown   -      -         -        -",
    ]
