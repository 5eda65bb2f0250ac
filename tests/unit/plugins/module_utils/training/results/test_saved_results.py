"""Results are read in order, an invalid one is named; the runs that remain; the result of a measurement of pairs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results import saved_results
from plugins.module_utils.training.results.saved_results import network_findings, remaining_runs, write_pairs
from tests.fakes.calling import here
from tests.fakes.programs import run
from tests.unit.plugins.module_utils.training.pairs.test_pair_result import NODES, output

RUN = {"nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 1.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": ', "Expecting value"),
        ("[1]", "it does not contain a JSON object"),
        (json.dumps({"name": "x", **RUN, "nodes": 1}).replace('"gpus"', '"cards"'), "it has no gpus"),
        ('{"nodes": 1}', "it has no name, gpus, transport, images_per_sec"),
    ],
)
def test_names_a_file_that_is_not_a_result(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(Refused, match=f"odd.json: could not read the result of a training run: {words}"):
        saved_results.runs(tmp_path, "*")


def test_timelines_are_found_at_any_depth(tmp_path: Path) -> None:
    for name in ("b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "timeline.json").write_text(json.dumps({"name": name}))
    (tmp_path / "a" / "other.json").write_text("no timeline")
    assert [one["name"] for one in saved_results.timelines(tmp_path)] == ["a/c", "b"]


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


SLOW = output(("n1", "n2", 9.0), ("n1", "n3", 1.0), ("n2", "n3", 1.0))


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    job = {"state": "finished", "started": time.time() - 60, "ended": time.time()}
    place = {"name": "fabric-1", "folder": str(tmp_path / "fabric")}
    limits = {"devices": {}, "least": 0.8, "expected": 0.0}
    return {**place, **limits, "nodes": NODES, "transport": "tcp", "nccl": "", "records": SLOW, "job": job}


def findings(given: dict[str, Any], *nodes: str) -> list[str]:
    return network_findings(folder=given["folder"], nodes=nodes or NODES, recent=86400)


def test_a_result_is_written_once_and_blocks_runs(given: dict[str, Any]) -> None:
    first = here(write_pairs, **given)
    assert first["changed"] and not here(write_pairs, **given)["changed"]
    assert json.loads(Path(first["files"][0]).read_text()) == first["result"]
    assert first["error"].startswith("n3 is slow with every other node")
    found = findings(given)
    assert [text.partition(" is")[0] for text in found] == ["fabric-1: n3"]
    assert findings(given, "n1", "n2") == []


@pytest.mark.parametrize("more", [{"least": 0.0}, {"least": 1.5}, {"expected": -1.0}])
def test_impossible_limits_are_refused(given: dict[str, Any], more: dict[str, Any]) -> None:
    refused = here(write_pairs, **{**given, **more})
    assert refused["failed"]
    assert refused["msg"].startswith("fabric-1: could not compare the pairs: least is")
    assert not Path(given["folder"]).exists()


def test_an_incomplete_result_is_refused(given: dict[str, Any]) -> None:
    path = Path(given["folder"], "broken", "result.json")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(Refused, match="could not read the result of a bandwidth measurement: it has no name"):
        findings(given)


def test_the_report_shows_the_check(given: dict[str, Any], tmp_path: Path) -> None:
    here(write_pairs, **given)
    folder = str(tmp_path / "report")
    run("report", results=str(tmp_path / "runs"), folder=folder, fabric=given["folder"])
    assert "n3 is slow with every other node" in Path(folder, "training.md").read_text()
    assert json.loads(Path(folder, "training.json").read_text())["fabric"][0]["name"] == "fabric-1"
