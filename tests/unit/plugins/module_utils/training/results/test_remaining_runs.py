"""The remaining runs of a measurement, on results as role training keeps them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.results.saved_results import remaining_runs
from tests.fakes.calling import here

REQUESTED = {"framework": "pytorch", "ranks_per_node": 1}
RESULT = {
    "name": "week-1-nodes-tcp-1",
    "nodes": 1,
    "gpus": 1,
    "transport": "tcp",
    "images_per_sec": 1.0,
    "proof": {"ok": True},
    "job": {"state": "finished"},
    "asked": REQUESTED,
}


def plan(folder: Path, **more: Any) -> dict[str, Any]:
    measured = {"name": "week", "nodes": ["w1", "w2"], "sizes": [], "transports": ["tcp"], "repeats": 1}
    measured.update({key: more.pop(key) for key in measured if key in more})
    given = {"measured": measured, "requested": REQUESTED, "results": str(folder), "prove": True}
    return here(remaining_runs, **{**given, **more})


def test_only_runs_without_a_good_result_are_left(tmp_path: Path) -> None:
    assert plan(tmp_path / "absent")["summary"].startswith("2 of 2 runs")
    (tmp_path / "week-1-nodes-tcp-1.json").write_text(json.dumps(RESULT))
    result = plan(tmp_path)
    assert result["summary"] == "1 of 2 runs remain:  week-2-nodes-tcp-1"
    assert [(run["name"], run["on"], run["again"]) for run in result["left"]] == [
        ("week-2-nodes-tcp-1", ["w1", "w2"], False)
    ]
    assert [run["name"] for run in plan(tmp_path, sizes=[2])["runs"]] == ["week-2-nodes-tcp-1"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"sizes": [3]}, "3 nodes are requested, but there are 2: w1, w2"),
        ({"transports": ["ib"]}, "the transport 'ib' is not one of tcp, rdma"),
        ({"requested": {**REQUESTED, "framework": "tensorflow"}}, "used another framework than requested now"),
    ],
)
def test_a_measurement_that_cannot_be_made_is_refused(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    (tmp_path / "week-1-nodes-tcp-1.json").write_text(json.dumps(RESULT))
    result = plan(tmp_path, **more)
    assert result["failed"] and result["msg"].startswith("the measurement week: could not plan its runs: ")
    assert words in result["msg"]
