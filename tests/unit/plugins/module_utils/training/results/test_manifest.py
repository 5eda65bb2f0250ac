"""Manifests of training runs, and the list of runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results import known_runs, manifest

from ..running.test_busy import BEGAN


def a_manifest(name: str = "one", **more: Any) -> dict[str, Any]:
    run = {"name": name, "run_dir": f"/runs/{name}", "nodes": ["w1", "w2"], "command": ["python", "train.py"]}
    return {**run, "transport": "tcp", "started": BEGAN, "asked_by": "anna@desk", **more}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting property name"),
        ("[" * 100000, "recursion"),
        ("[]", "does not contain a JSON object"),
        (json.dumps({**a_manifest(), "nodes": [1]}), "its nodes are missing or malformed"),
        (json.dumps({"name": "one"}), "its run_dir, nodes, command, transport are missing"),
        (json.dumps({**a_manifest(), "end": 7}), "its end are missing or malformed"),
    ],
)
def test_another_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(Refused, match=f"training run one: could not read its manifest: .*{words}"):
        manifest.parsed(text, "one")


def test_a_comparison_shows_the_differences_then_the_ends() -> None:
    end = {"state": "finished", "images_per_sec": 123.456, "loss": 0.5, "steps": 40, "ended": BEGAN + 90}
    one = a_manifest(code={"sha256": "a", "git": {"commit": "c1"}}, end=end)
    other = a_manifest("two", code={"sha256": "a", "git": {"commit": "c2"}}, asked={"lr": [1]}, started=BEGAN + 1)
    lines = [line.split() for line in manifest.compared(one, other)]
    assert lines[0] == ["one", "two"]
    assert lines[1:3] == [["code.git.commit", "c1", "c2"], ["asked.lr", "-", "1"]]
    assert lines[3] == ["all", "other", "settings", "equal", "equal"]
    assert ["rate", "123.5", "images/s", "-"] in lines
    assert ["duration", "90", "s", "-"] in lines
    assert not any("anna" in word or "/runs" in word for line in lines for word in line)


def test_comparison_shows_a_long_difference_whole() -> None:
    paths = [f"/{'deep/' * 40}{name}" for name in ("old", "new")]
    lines = [line.split() for line in manifest.compared(*(a_manifest(folder=path, framework=path) for path in paths))]

    cells = [line[-2:] for line in lines if "/deep" in line[-1]]
    assert ["".join(column) for column in zip(*cells)] == paths
    assert "framework" not in {line[0] for line in lines}, "a command has no framework of the benchmark"


def test_a_table_masks_control_characters_and_shortens_cells() -> None:
    first, second = manifest.table([("a\x1b[2J", "b"), ("x" * 200, "c")])
    assert first.split() == ["a?[2J", "b"]
    assert second == "x" * 77 + "...  c"


def test_values_of_running_jobs_replace_the_manifests() -> None:
    on_nodes = {"name": "one", "asked_by": "", "user": "train", "started": BEGAN, "step": 7, "nodes": ["w1"]}
    manifests = [
        a_manifest(),
        a_manifest("open", started=None),
        a_manifest("old", end={"state": "died", "cause": "why"}),
    ]
    found = {each["name"]: each for each in known_runs.listed([on_nodes], manifests, ["w2"])}
    assert (found["one"]["state"], found["one"]["nodes"], found["one"]["step"]) == ("running", ["w1", "w2"], 7)
    assert (found["open"]["state"], found["open"]["cause"]) == ("unknown", "unreachable: w2")
    assert (found["old"]["state"], found["old"]["cause"]) == ("died", "why")
    (again,) = known_runs.listed([], [a_manifest()], [])
    assert again["cause"] == "follow it with training_name=one"


def test_lists_each_run_in_a_table_row() -> None:
    end = {"state": "finished", "steps": 40, "images_per_sec": 99.44}
    lines = known_runs.table_lines(
        known_runs.listed([], [a_manifest(end=end), a_manifest("two", started=BEGAN - 9)], [])
    )
    assert lines[0].split() == list(known_runs.COLUMNS)
    assert [line.split()[0] for line in lines[1:]] == ["two", "one"]
    assert "finished  40    -     w1,w2  99.4 images/s  -" in lines[2]
    assert known_runs.table_lines([]) == [known_runs.NOTHING]


def test_lists_steps_per_second_without_image_rates() -> None:
    ended = a_manifest(end={"state": "finished", "steps": 60, "steps_per_sec": 11.704})

    assert "11.70 steps/s" in known_runs.table_lines(known_runs.listed([], [ended], []))[1]
    assert ["pace", "11.7", "steps/s", "-"] in [line.split() for line in manifest.compared(ended, a_manifest("two"))]


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.text())
)
LIES = st.dictionaries(
    st.sampled_from([*a_manifest(), "end", "port", "rank_0_on", "code", "folder", "reported"]), VALUES
)


@given(LIES)
def test_a_nodes_manifest_cannot_change_the_controllers(lie: dict[str, Any]) -> None:
    own, today = a_manifest(), a_manifest(command=["today.py"])
    node = {**own, **lie}

    followed, continued = manifest.followed(own, node), {**today, **manifest.continued(own, node)}

    assert followed == own
    assert continued["command"] in (own["command"], today["command"])
    assert continued["nodes"] == own["nodes"] and "end" not in continued and "folder" not in continued
    differ = {key for key in lie if lie[key] != own.get(key)} - {"end", "reported"}
    assert set(manifest.contradicted(own, node)) == differ


@given(LIES)
def test_marks_a_manifest_reported_only_by_a_node(lie: dict[str, Any]) -> None:
    node = {**a_manifest(), **lie}

    assert manifest.followed({}, node)["reported"] is True
    assert "end" not in manifest.followed({}, node)
    assert set(manifest.continued({}, node)) <= {"started", "asked_by", "port", "rank_0_on"}
    assert manifest.contradicted({}, node) == []


def test_a_malformed_node_manifest_counts_only_alone() -> None:
    assert manifest.reported("{", "one", a_manifest()) == {}
    assert manifest.continued(a_manifest(), {}) == a_manifest()
    with pytest.raises(Refused, match="could not read its manifest"):
        manifest.reported("{", "one", {})
