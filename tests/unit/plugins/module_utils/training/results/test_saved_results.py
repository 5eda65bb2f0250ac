"""Results are read in order, an invalid one is named; the runs that remain; the result of a measurement of pairs."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results import saved_results
from plugins.module_utils.training.results.saved_results import (
    SweepError,
    network_findings,
    remaining,
    remaining_runs,
    runs_of_sizes,
    summary,
    with_nodes,
    write_pairs,
)
from tests.fakes.calling import here
from tests.fakes.programs import run
from tests.unit.plugins.module_utils.training.pairs.test_pair_result import NODES, output

RUN = {"nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 1.0}
OF_MEASUREMENT = {"options": ["--batch-size", "32"], "ranks_per_node": 1}
SIZES = st.lists(st.integers(1, 32), min_size=1, max_size=6, unique=True)
TRANSPORTS = st.lists(st.sampled_from(["tcp", "rdma"]), min_size=1, unique=True)
REPEATS = st.integers(1, 6)


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
def written(tmp_path: Path) -> dict[str, Any]:
    job = {"state": "finished", "started": time.time() - 60, "ended": time.time()}
    place = {"name": "fabric-1", "folder": str(tmp_path / "fabric")}
    limits = {"devices": {}, "least": 0.8, "expected": 0.0}
    return {**place, **limits, "nodes": NODES, "transport": "tcp", "nccl": "", "records": SLOW, "job": job}


def findings(written: dict[str, Any], *nodes: str) -> list[str]:
    return network_findings(folder=written["folder"], nodes=nodes or NODES, recent=86400)


def test_a_result_is_written_once_and_blocks_runs(written: dict[str, Any]) -> None:
    first = here(write_pairs, **written)
    assert first["changed"] and not here(write_pairs, **written)["changed"]
    assert json.loads(Path(first["files"][0]).read_text()) == first["result"]
    assert first["error"].startswith("n3 is slow with every other node")
    found = findings(written)
    assert [text.partition(" is")[0] for text in found] == ["fabric-1: n3"]
    assert findings(written, "n1", "n2") == []


@pytest.mark.parametrize("more", [{"least": 0.0}, {"least": 1.5}, {"expected": -1.0}])
def test_impossible_limits_are_refused(written: dict[str, Any], more: dict[str, Any]) -> None:
    refused = here(write_pairs, **{**written, **more})
    assert refused["failed"]
    assert refused["msg"].startswith("fabric-1: could not compare the pairs: least is")
    assert not Path(written["folder"]).exists()


def test_an_incomplete_result_is_refused(written: dict[str, Any]) -> None:
    path = Path(written["folder"], "broken", "result.json")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(Refused, match="could not read the result of a bandwidth measurement: it has no name"):
        findings(written)


def test_the_report_shows_the_check(written: dict[str, Any], tmp_path: Path) -> None:
    here(write_pairs, **written)
    folder = str(tmp_path / "report")
    run("report", results=str(tmp_path / "runs"), folder=folder, fabric=written["folder"])
    assert "n3 is slow with every other node" in Path(folder, "training.md").read_text()
    assert json.loads(Path(folder, "training.json").read_text())["fabric"][0]["name"] == "fabric-1"


def point(run: dict[str, Any]) -> tuple[int, str]:
    return run["nodes"], run["transport"]


def result(name: str, **more: Any) -> dict[str, Any]:
    good = {"job": {"state": "finished"}, "proof": {"ok": True}, "nodes": 2, "asked": dict(OF_MEASUREMENT)}
    return {"name": name, **good, **more}


@given(SIZES, TRANSPORTS, REPEATS)
def test_measures_each_point_the_requested_number_of_times(
    sizes: list[int], transports: list[str], repeats: int
) -> None:
    made = runs_of_sizes(sizes, transports, repeats)
    assert Counter(map(point, made)) == {(size, name): repeats for size in sizes for name in transports}
    assert len({one["name"] for one in made}) == len(made)
    for key in {point(one) for one in made}:
        assert [one["repeat"] for one in made if point(one) == key] == list(range(1, repeats + 1))


@given(SIZES, REPEATS)
def test_transports_take_turns(sizes: list[int], repeats: int) -> None:
    made = runs_of_sizes(sizes, ["tcp", "rdma"], repeats)
    pairs = list(zip(made[::2], made[1::2], strict=True))
    assert all(one["nodes"] == other["nodes"] and one["transport"] != other["transport"] for one, other in pairs)
    for size in sizes:
        first = [one["transport"] for one, _other in pairs if one["nodes"] == size]
        assert first == ["tcp" if number % 2 == 0 else "rdma" for number in range(repeats)]


@given(SIZES, TRANSPORTS, st.integers(1, 3))
def test_linear_drift_affects_every_point_equally(sizes: list[int], transports: list[str], pairs: int) -> None:
    made = runs_of_sizes(sizes, transports, 2 * pairs)
    places: dict[tuple[int, str], int] = Counter()
    for place, one in enumerate(made):
        places[point(one)] += place
    assert len(set(places.values())) == 1


@given(SIZES, TRANSPORTS, REPEATS, st.data())
def test_does_not_repeat_finished_runs(
    sizes: list[int], transports: list[str], repeats: int, data: st.DataObject
) -> None:
    made = runs_of_sizes(sizes, transports, repeats)
    done = data.draw(st.sets(st.sampled_from([one["name"] for one in made])))
    rest = remaining(made, [result(name) for name in done], OF_MEASUREMENT)
    assert [one["name"] for one in rest] == [one["name"] for one in made if one["name"] not in done]
    assert remaining(made, [result(one["name"]) for one in made], OF_MEASUREMENT) == []


@pytest.mark.parametrize(
    ("more", "prove", "again"),
    [
        ({}, True, False),
        ({"job": {"state": "died"}}, True, True),
        ({"proof": {"ok": False}}, True, True),
        ({"proof": {"ok": False}}, False, False),
        ({"proof": {"ok": False}, "nodes": 1}, True, False),
    ],
)
def test_an_invalid_result_is_ignored(more: dict[str, Any], prove: bool, again: bool) -> None:
    made = runs_of_sizes([2], ["tcp"], 2)
    rest = remaining(made, [result("2-nodes-tcp-1", **more)], OF_MEASUREMENT, prove=prove)
    assert [(one["name"], one["again"]) for one in rest] == (
        [("2-nodes-tcp-1", True), ("2-nodes-tcp-2", False)] if again else [("2-nodes-tcp-2", False)]
    )


def test_refuses_results_of_other_options() -> None:
    other = result("2-nodes-tcp-1", asked={**OF_MEASUREMENT, "options": []})
    with pytest.raises(SweepError, match="2-nodes-tcp-1 used another options than requested now"):
        remaining(runs_of_sizes([2], ["tcp"], 1), [other], OF_MEASUREMENT)
    with pytest.raises(SweepError, match="another options and ranks_per_node"):
        remaining(runs_of_sizes([2], ["tcp"], 1), [result("2-nodes-tcp-1", asked=None)], OF_MEASUREMENT)


@pytest.mark.parametrize(
    ("sizes", "transports", "repeats", "words"),
    [
        ([], ["tcp"], 1, "numbers of nodes are []"),
        ([2, 2], ["tcp"], 1, r"\[2, 2\]: specify one or more, each once"),
        ([0], ["tcp"], 1, "of 1 or more"),
        ([1], [], 1, "transports are"),
        ([1], ["ib"], 1, "'ib' is not one of tcp, rdma"),
        ([1], ["tcp"], 0, "repeats is 0"),
    ],
)
def test_refuses_impossible_measurements(sizes: list[int], transports: list[str], repeats: int, words: str) -> None:
    with pytest.raises(SweepError, match=words.replace("[]", r"\[\]")):
        runs_of_sizes(sizes, transports, repeats)


def test_places_runs_on_the_first_nodes() -> None:
    made = with_nodes(runs_of_sizes([1, 2], ["tcp"], 1, "week"), ["w1", "w2", "w3"])
    assert [(one["name"], one["on"]) for one in made] == [
        ("week-1-nodes-tcp-1", ["w1"]),
        ("week-2-nodes-tcp-1", ["w1", "w2"]),
    ]
    assert summary(made, made[1:]) == "1 of 2 runs remain:  week-2-nodes-tcp-1"
    assert summary(made, []) == "0 of 2 runs remain:  none"
    with pytest.raises(SweepError, match="4 nodes are requested, but there are 2: w1, w2"):
        with_nodes(runs_of_sizes([1, 4], ["tcp"], 1), ["w1", "w2"])
