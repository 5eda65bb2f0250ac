"""The order of the runs of a scaling measurement, and its continuation after an interruption."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.results.sweep_runs import SweepError, remaining, runs, summary, with_nodes

REQUESTED = {"options": ["--batch-size", "32"], "ranks_per_node": 1}
SIZES = st.lists(st.integers(1, 32), min_size=1, max_size=6, unique=True)
TRANSPORTS = st.lists(st.sampled_from(["tcp", "rdma"]), min_size=1, unique=True)
REPEATS = st.integers(1, 6)


def point(run: dict[str, Any]) -> tuple[int, str]:
    return run["nodes"], run["transport"]


def result(name: str, **more: Any) -> dict[str, Any]:
    good = {"job": {"state": "finished"}, "proof": {"ok": True}, "nodes": 2, "asked": dict(REQUESTED)}
    return {"name": name, **good, **more}


@given(SIZES, TRANSPORTS, REPEATS)
def test_measures_each_point_the_requested_number_of_times(
    sizes: list[int], transports: list[str], repeats: int
) -> None:
    made = runs(sizes, transports, repeats)
    assert Counter(map(point, made)) == {(size, name): repeats for size in sizes for name in transports}
    assert len({run["name"] for run in made}) == len(made)
    for key in {point(run) for run in made}:
        assert [run["repeat"] for run in made if point(run) == key] == list(range(1, repeats + 1))


@given(SIZES, REPEATS)
def test_transports_take_turns(sizes: list[int], repeats: int) -> None:
    made = runs(sizes, ["tcp", "rdma"], repeats)
    pairs = list(zip(made[::2], made[1::2], strict=True))
    assert all(one["nodes"] == other["nodes"] and one["transport"] != other["transport"] for one, other in pairs)
    for size in sizes:
        first = [one["transport"] for one, _other in pairs if one["nodes"] == size]
        assert first == ["tcp" if number % 2 == 0 else "rdma" for number in range(repeats)]


@given(SIZES, TRANSPORTS, st.integers(1, 3))
def test_linear_drift_affects_every_point_equally(sizes: list[int], transports: list[str], pairs: int) -> None:
    made = runs(sizes, transports, 2 * pairs)
    places: dict[tuple[int, str], int] = Counter()
    for place, run in enumerate(made):
        places[point(run)] += place
    assert len(set(places.values())) == 1


@given(SIZES, TRANSPORTS, REPEATS, st.data())
def test_does_not_repeat_finished_runs(
    sizes: list[int], transports: list[str], repeats: int, data: st.DataObject
) -> None:
    made = runs(sizes, transports, repeats)
    done = data.draw(st.sets(st.sampled_from([run["name"] for run in made])))
    rest = remaining(made, [result(name) for name in done], REQUESTED)
    assert [run["name"] for run in rest] == [run["name"] for run in made if run["name"] not in done]
    assert remaining(made, [result(run["name"]) for run in made], REQUESTED) == []


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
    made = runs([2], ["tcp"], 2)
    rest = remaining(made, [result("2-nodes-tcp-1", **more)], REQUESTED, prove=prove)
    assert [(run["name"], run["again"]) for run in rest] == (
        [("2-nodes-tcp-1", True), ("2-nodes-tcp-2", False)] if again else [("2-nodes-tcp-2", False)]
    )


def test_refuses_results_of_other_options() -> None:
    other = result("2-nodes-tcp-1", asked={**REQUESTED, "options": []})
    with pytest.raises(SweepError, match="2-nodes-tcp-1 used another options than requested now"):
        remaining(runs([2], ["tcp"], 1), [other], REQUESTED)
    with pytest.raises(SweepError, match="another options and ranks_per_node"):
        remaining(runs([2], ["tcp"], 1), [result("2-nodes-tcp-1", asked=None)], REQUESTED)


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
        runs(sizes, transports, repeats)


def test_places_runs_on_the_first_nodes() -> None:
    made = with_nodes(runs([1, 2], ["tcp"], 1, "week"), ["w1", "w2", "w3"])
    assert [(run["name"], run["on"]) for run in made] == [
        ("week-1-nodes-tcp-1", ["w1"]),
        ("week-2-nodes-tcp-1", ["w1", "w2"]),
    ]
    assert summary(made, made[1:]) == "1 of 2 runs remain:  week-2-nodes-tcp-1"
    assert summary(made, []) == "0 of 2 runs remain:  none"
    with pytest.raises(SweepError, match="4 nodes are requested, but there are 2: w1, w2"):
        with_nodes(runs([1, 4], ["tcp"], 1), ["w1", "w2"])
